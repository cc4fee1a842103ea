"""Reads arrays, sparse matrices and lists of numbers out of Python 2's pickles, without unpickling them.

A pickle is a program: Python's unpickler imports and calls what it names. Here the same instructions are followed by a
machine that imports nothing and calls nothing. What a file names stays a name, what it makes stays a note of how it
says that it is made, and only the notes of arrays, sparse matrices and dictionaries of lists are understood afterwards.
"""

import math
import pickletools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from graphattn.errors import GraphError

Array = npt.NDArray[Any]

_ARRAY = "numpy.core.multiarray _reconstruct"
_DTYPE = "numpy dtype"
_MATRIX = "scipy.sparse.csr csr_matrix"
_DICTIONARY = "collections defaultdict"
_NAMES = {_ARRAY, "numpy ndarray", _DTYPE, _MATRIX, _DICTIONARY, "__builtin__ list"}
_NUMBERS = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"}  # kind and bytes: no objects, no records
_LARGEST_SIZE = 2**31 - 1


def read_array(path: Path) -> Array:
    """The array of numbers, of one or two axes, in a file.

    Raises:
        GraphError: the file holds something else; the message says what.
    """
    return _array(_noted(path), path)


def read_matrix(path: Path) -> sparse.csr_array:
    """The sparse matrix in a file: SciPy's ``csr_matrix``.

    Raises:
        GraphError: the file holds something else, or a matrix that cannot be; the message says what.
    """
    made = _noted(path)
    if not (isinstance(made, _Made) and made.by == _MATRIX and isinstance(made.state, dict)):
        raise _unfit(path, "holds no sparse matrix in CSR form")
    shape: Any = made.state.get("_shape")
    data, indices, indptr = (_array(made.state.get(part), path) for part in ("data", "indices", "indptr"))
    if not (_are_sizes(shape) and len(shape) == 2):
        raise _unfit(path, f"holds a matrix whose shape is not two sizes up to {_LARGEST_SIZE}")
    if not all(index.dtype.kind in "iu" for index in (indices, indptr)):
        raise _unfit(path, "holds a matrix whose indices are no integers")
    try:
        matrix = sparse.csr_array((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=shape)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise _unfit(path, f"holds a matrix that cannot be: {error!s:.80}") from error
    return matrix


def read_lists(path: Path) -> dict[int, list[int]]:
    """The lists of integers by an integer in a file: a dictionary, or a ``defaultdict``.

    Raises:
        GraphError: the file holds something else.
    """
    made = _noted(path)
    lists = made.items if isinstance(made, _Made) and made.by == _DICTIONARY else made
    if not (
        isinstance(lists, dict)
        and all(type(key) is int for key in lists)
        and all(isinstance(row, list) and all(type(number) is int for number in row) for row in lists.values())
    ):
        raise _unfit(path, "holds no lists of integers by an integer")
    if len({id(row) for row in lists.values()}) < len(lists):  # a small file could be endless
        raise _unfit(path, "holds one list for several integers")
    return lists


@dataclass(frozen=True)
class _Name:
    """Something that a file names: module and name."""

    text: str


@dataclass(eq=False)
class _Made:
    """Something that a file says it makes, and out of what; nothing has been called."""

    by: str
    state: Any = None
    arguments: tuple[Any, ...] = ()
    items: dict[Any, Any] = field(default_factory=dict)


def _array(made: Any, path: Path) -> Array:
    """The array behind a note; the file must hold exactly the bytes that its shape needs."""
    if not (isinstance(made, _Made) and made.by == _ARRAY and isinstance(made.state, tuple) and len(made.state) == 5):
        raise _unfit(path, "holds something where an array should be")
    _, shape, noted_dtype, by_column, content = made.state
    dtype = _dtype(noted_dtype, path)
    if not (_are_sizes(shape) and len(shape) in {1, 2} and isinstance(content, str) and isinstance(by_column, bool)):
        raise _unfit(path, f"holds an array that is no vector or matrix, of sizes up to {_LARGEST_SIZE}")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise _unfit(
            path, f"holds an array of {len(content)} bytes, which are not the {dtype} numbers of its shape {shape}"
        )
    flat = np.frombuffer(content.encode("latin-1"), dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if by_column else "C")


def _dtype(made: Any, path: Path) -> np.dtype[Any]:
    """The dtype behind a note: plain numbers only."""
    if isinstance(made, _Made) and made.by == _DTYPE and isinstance(made.state, tuple) and len(made.state) >= 5:
        code, (order, *fields) = made.arguments[:1], made.state[1:5]
        if code and isinstance(code[0], str) and isinstance(order, str) and fields == [None] * 3:
            if code[0] in _NUMBERS and order in {"<", ">", "|"}:
                return np.dtype(order + code[0])
            raise _unfit(path, f"holds an array of dtype {order + code[0]!r:.40}, which are no plain numbers")
    raise _unfit(path, "holds an array without a dtype of plain numbers")


def _are_sizes(shape: Any) -> bool:
    return isinstance(shape, tuple) and all(type(size) is int and 0 <= size <= _LARGEST_SIZE for size in shape)


def _unfit(path: Path, what: str) -> GraphError:
    return GraphError(f"{path} {what}; nothing in it was run. Fetch the file again from where it was published.")


def _noted(path: Path) -> Any:
    """What the program in a file leaves behind, as notes."""
    machine = _Machine(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of odd escapes in a damaged file
        try:
            for instruction, argument, _ in pickletools.genops(path.read_bytes()):
                machine.follow(instruction.name, argument)
        except GraphError:
            raise
        except ValueError as error:  # of pickletools
            raise _unfit(path, f"is damaged or no pickle: {error!s:.80}") from error
    return machine.pop()


@dataclass
class _Machine:
    """The stack that a pickle works on, with the instructions of protocol 2 that data need."""

    path: Path
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)  # how high the stack was at each mark
    memo: dict[int, Any] = field(default_factory=dict)

    def follow(self, instruction: str, argument: Any) -> None:
        """One instruction."""
        if instruction not in _INSTRUCTIONS:
            raise _unfit(self.path, f"uses the instruction {instruction}, which data do not need")
        _INSTRUCTIONS[instruction](self, argument)

    def pop(self) -> Any:
        """The topmost value, of those above the last mark."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise _unfit(self.path, "is damaged: it takes what it did not put")
        return self.stack.pop()

    def top(self, kind: type | tuple[type, ...]) -> Any:
        """The topmost value, which must be of a kind."""
        value = self.pop()
        if not isinstance(value, kind):
            raise _unfit(
                self.path, f"is damaged: it takes {type(value).__name__.strip('_').lower()!r} for something else"
            )
        self.stack.append(value)
        return value

    def above_mark(self) -> list[Any]:
        """The values put since the last mark, which goes."""
        if not self.marks:
            raise _unfit(self.path, "is damaged: it goes back to a mark that it did not set")
        first = self.marks.pop()
        values = self.stack[first:]
        del self.stack[first:]
        return values

    def put(self, value: Any) -> None:
        """Put a constant."""
        self.stack.append(value)

    def name(self, text: str) -> None:
        """Note a name, if it is one of the few that data need."""
        if text not in _NAMES:
            raise _unfit(self.path, f"names {text.replace(' ', '.'):.80}, which is no array, matrix or list of numbers")
        self.stack.append(_Name(text))

    def make(self) -> None:
        """Note a call or a new object."""
        arguments = self.pop()
        by = self.top(_Name)
        if not isinstance(arguments, tuple):
            raise _unfit(self.path, "makes something out of what is no tuple")
        self.stack[-1] = _Made(by.text, arguments=arguments)

    def build(self) -> None:
        """Note the state of what was made."""
        state = self.pop()
        self.top(_Made).state = state

    def tuple_of(self, count: int) -> None:
        """Join the topmost values."""
        self.stack.append(tuple(self.pop() for _ in range(count))[::-1])

    def append(self, values: list[Any]) -> None:
        """To the list below them."""
        self.top(list).extend(values)

    def set_items(self, values: list[Any]) -> None:
        """Keys and values in turn, into the dictionary below them."""
        into = self.top((dict, _Made))
        if len(values) % 2 or not all(type(key) in {int, str} for key in values[::2]):
            raise _unfit(self.path, "has a dictionary whose keys are neither numbers nor texts")
        (into if isinstance(into, dict) else into.items).update(zip(values[::2], values[1::2], strict=True))

    def remember(self, place: int) -> None:
        """The topmost value, for later."""
        self.memo[place] = self.top(object)

    def recall(self, place: int) -> None:
        """A value that was remembered."""
        if place not in self.memo:
            raise _unfit(self.path, "is damaged: it recalls what it did not remember")
        self.stack.append(self.memo[place])


_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "STOP"), lambda _, __: None),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINSTRING", "SHORT_BINSTRING"), _Machine.put),
    "NONE": lambda machine, _: machine.put(None),
    "NEWTRUE": lambda machine, _: machine.put(True),
    "NEWFALSE": lambda machine, _: machine.put(False),
    "EMPTY_TUPLE": lambda machine, _: machine.put(()),
    "EMPTY_LIST": lambda machine, _: machine.put([]),
    "EMPTY_DICT": lambda machine, _: machine.put({}),
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "TUPLE": lambda machine, _: machine.put(tuple(machine.above_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": lambda machine, _: machine.append([machine.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.above_mark()),
    "SETITEM": lambda machine, _: machine.set_items([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.above_mark()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.recall),
    "GLOBAL": _Machine.name,
    "NEWOBJ": lambda machine, _: machine.make(),
    "REDUCE": lambda machine, _: machine.make(),
    "BUILD": lambda machine, _: machine.build(),
}
