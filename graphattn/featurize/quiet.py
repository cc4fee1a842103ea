"""RDKit's log, caught: nothing is printed, and its words can be handed on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rdkit import rdBase

_LOCK = threading.Lock()


@contextmanager
def quiet_rdkit() -> Iterator[rdBase.CaptureErrorLog]:
    """Keep RDKit from printing; what it would have printed as an error is in the ``messages`` of what this yields.

    RDKit reports what is wrong with a SMILES on its error log only, and that log belongs to the whole process: one
    thread at a time may be in here. Not to be nested.

    >>> from rdkit import Chem
    >>> with quiet_rdkit() as log:
    ...     mol = Chem.MolFromSmiles("C1CC")
    >>> log.messages.strip()[11:]  # without the time
    "SMILES Parse Error: unclosed ring for input: 'C1CC'"
    """
    with _LOCK, rdBase.BlockLogs(), rdBase.CaptureErrorLog() as log:
        yield log
