"""Public benchmark data for tests: a test that needs some is skipped where it is not at hand."""

from pathlib import Path

import pytest
from public_data import public_file


def shared_file(name: str) -> Path:
    """The path of ``name`` (such as ``molnet/Lipophilicity.csv``); skips the test where the file is not there."""
    try:
        return public_file(name)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
