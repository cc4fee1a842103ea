"""Writes pickles as Python 2 did, with the NumPy and SciPy of its time: what Planetoid's files look like."""

import io
import pickle
import struct
from typing import ClassVar

import numpy as np
from scipy import sparse

NAMES = {b"numpy._core.multiarray\n": b"numpy.core.multiarray\n", b"scipy.sparse._csr\n": b"scipy.sparse.csr\n"}


class _Python2(pickle._Pickler):
    """Texts and bytes were one."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_string(self, value):
        content = value.encode("latin-1") if isinstance(value, str) else value
        short = len(content) < 256
        self.write(b"U" + bytes([len(content)]) if short else b"T" + struct.pack("<i", len(content)))
        self.write(content)
        self.memoize(value)

    dispatch[str] = dispatch[bytes] = save_string


def python2_pickle(value):
    """The bytes of a pickle of protocol 2."""
    file = io.BytesIO()
    _Python2(file, protocol=2).dump(value)
    content = file.getvalue()
    for new, old in NAMES.items():
        content = content.replace(new, old)
    return content


def csr_matrix(rows):
    """A sparse matrix as Planetoid has them."""
    return sparse.csr_matrix(np.asarray(rows))
