"""The exception tree: what is drawn in ``errors.py`` is what there is."""

import inspect
import re

import pytest

from graphattn import errors

CLASSES = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind)}


def test_the_drawing_names_every_class():
    drawn = set(re.findall(r"\b[A-Z]\w+(?:Error|Warning)\b", errors.__doc__)) - {"ValueError", "UserWarning"}
    assert drawn == set(CLASSES)


@pytest.mark.parametrize("name", sorted(set(CLASSES) - {"GraphattnError", "GraphattnWarning"}))
def test_every_error_can_be_caught_as_a_value_error(name):
    assert issubclass(CLASSES[name], errors.GraphattnError)
    assert issubclass(CLASSES[name], ValueError)
