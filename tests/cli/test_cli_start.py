"""How the command line starts: at once, the same from both names, with every option made from the settings."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from command_line import run
from typer.testing import CliRunner

import graphattn
from graphattn.cli.options import options_from_settings
from graphattn.errors import SettingError
from graphattn.model.config import NetworkConfig
from graphattn.training.config import TrainingConfig

HEAVY = {"torch", "pandas", "rdkit", "numpy", "sklearn", "torch_geometric", "lightning_fabric"}


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["predict", "--help"], ["--version"]], ids=str)
def test_help_needs_nothing_heavy(arguments):
    code = (
        "import sys, atexit; sys.argv = ['graphattn', *sys.argv[1:]];"
        f"atexit.register(lambda: print('heavy:', sorted({HEAVY!r} & set(sys.modules))));"
        "from graphattn.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("heavy: []\n")
    assert done.stderr == ""


def test_the_script_and_the_module_are_the_same_command():
    script = Path(sys.executable).with_name("graphattn")
    for command in ([script], [sys.executable, "-m", "graphattn"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"graphattn {graphattn.__version__}\n"


def test_no_command_shows_the_help_and_is_wrong_usage():
    done = run()
    assert done.code == 2
    assert "train" in done.out + done.err


def test_an_unknown_command_is_wrong_usage_with_a_suggestion():
    done = run("trian")
    assert done.code == 2
    assert "train" in done.err


def test_every_setting_is_an_option_with_help():
    text = run("train", "--help").out
    for config in (NetworkConfig(), TrainingConfig()):
        for name in vars(config):
            assert f"--{name.replace('_', '-')}" in text


@dataclass(frozen=True, kw_only=True)
class Wings:
    span: Annotated[int, "in meters"] = 2
    folded: Annotated[bool, "for the night"] = False

    def __post_init__(self):
        if self.span < 0:
            raise SettingError(f"span must be at least 0, got {self.span}")


def test_fields_become_options_and_come_back_as_settings():
    app = typer.Typer()
    seen = []

    @app.command()
    @options_from_settings
    def fly(*, name: str, wings: Wings) -> None:
        seen.append((name, wings))

    runner = CliRunner()
    assert runner.invoke(app, ["a", "--span", "7", "--folded"]).exit_code == 0
    assert runner.invoke(app, ["b"]).exit_code == 0
    assert seen == [("a", Wings(span=7, folded=True)), ("b", Wings())]
    refused = runner.invoke(app, ["c", "--span", "-1"])
    assert refused.exit_code == 2
    assert "span must be at least 0, got -1" in refused.output
    shown = runner.invoke(app, ["--help"]).output
    assert "In meters." in shown
    assert "Wings" in shown
