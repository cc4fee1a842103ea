"""Where benchmarks and tests find public data: a folder beside the checkout, or one that is named; never downloaded."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
VARIABLE = "GRAPHATTN_SHARED_DATA"


def public_file(name: str) -> Path:
    """The path of a file such as ``molnet/Lipophilicity.csv``, in the folder that GRAPHATTN_SHARED_DATA names.

    Without that variable the folder is ``../shared/data`` beside the checkout.

    Raises:
        FileNotFoundError: the file is not there; the message says how to name the folder.
    """
    path = Path(os.environ.get(VARIABLE, CHECKOUT.parent / "shared" / "data")) / name
    if not path.is_file():
        raise FileNotFoundError(f"public data file {name} is not at {path}; set {VARIABLE} to the folder that has it")
    return path
