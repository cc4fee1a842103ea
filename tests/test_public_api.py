"""The public names: all importable, all documented, and loaded only when they are used."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import graphattn

NAMES = [name for name in graphattn.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_is_importable_and_documented(name):
    value = getattr(graphattn, name)
    assert inspect.getdoc(value), f"graphattn.{name} has no docstring"


def test_all_lists_each_name_once_and_dir_shows_them():
    assert len(set(graphattn.__all__)) == len(graphattn.__all__)
    assert set(graphattn.__all__) <= set(dir(graphattn))


def test_errors_and_warnings_can_be_caught_by_their_public_names():
    from graphattn import errors  # noqa: PLC0415

    assert graphattn.GraphattnError is errors.GraphattnError
    assert graphattn.GraphattnWarning is errors.GraphattnWarning


def test_a_wrong_name_is_answered_with_the_names_there_are():
    with pytest.raises(AttributeError, match=r"module 'graphattn' has no attribute 'Adjacancy'; it has .*Adjacency"):
        _ = graphattn.Adjacancy


def test_importing_the_package_imports_nothing_heavy_and_prints_nothing():
    code = "import sys, graphattn; print(sorted({'torch', 'rdkit', 'pandas', 'numpy', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_version_is_that_of_the_project_file():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{graphattn.__version__}"\n' in text
