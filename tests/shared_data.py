"""Public benchmark data for tests: looked up beside the checkout, never downloaded."""

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]


def shared_file(name: str) -> Path:
    """The path of ``name`` (such as ``molnet/Lipophilicity.csv``); skips the test where the file is not there.

    Looks in the folder that the environment variable GRAPHATTN_SHARED_DATA names, else in ``../shared/data`` beside
    the checkout.
    """
    path = Path(os.environ.get("GRAPHATTN_SHARED_DATA", CHECKOUT.parent / "shared" / "data")) / name
    if not path.is_file():
        pytest.skip(f"public benchmark file {name} is not at hand; set GRAPHATTN_SHARED_DATA to the folder that has it")
    return path
