"""A pickle is a program. Whatever one holds, reading it runs nothing, and gives numbers or an error."""

import os
import pickle
import struct
import sys
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from python2_pickles import csr_matrix, python2_pickle

from graphattn.data.pickled_arrays import read_array, read_lists, read_matrix
from graphattn.errors import GraphError

READERS = {"array": read_array, "matrix": read_matrix, "lists": read_lists}
GRID = np.arange(6).reshape(2, 3)


@pytest.fixture
def file(tmp_path):
    """A function that writes a file and gives its path."""

    def write(content):
        path = tmp_path / "ind.some.x"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "<i2", ">i4", "<i8", "<f4", ">f8", "<u8"])
@pytest.mark.parametrize(
    "make", [np.array, np.asfortranarray, np.ravel, lambda grid: grid[:0]], ids=["C", "Fortran", "vector", "empty"]
)
def test_arrays_come_back(file, dtype, make):
    array = make(GRID.astype(dtype))
    found = read_array(file(python2_pickle(array)))
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable


def test_sparse_matrices_come_back(file):
    rows = np.array([[0, 1.5, 0], [0, 0, 0], [2.5, 0, -3]])
    np.testing.assert_array_equal(read_matrix(file(python2_pickle(csr_matrix(rows)))).toarray(), rows)
    assert read_matrix(file(python2_pickle(csr_matrix(np.zeros((0, 4)))))).shape == (0, 4)


@pytest.mark.parametrize("kind", [dict, lambda lists: defaultdict(list, lists)])
def test_lists_come_back(file, kind):
    lists = {0: [1, 300, 70_000], 2: [], 4: [2**40], 9: [-1]}
    assert read_lists(file(python2_pickle(kind(lists)))) == lists


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_refuses_what_the_others_read(file, reader):
    values = {"array": GRID, "matrix": csr_matrix(GRID), "lists": {0: [1], 1: [0]}}
    refusals = {
        "array": "holds something where an array should be",
        "matrix": "holds no sparse matrix in CSR form",
        "lists": "holds no lists of integers by an integer",
    }
    for kind, value in values.items():
        if kind != reader:
            with pytest.raises(GraphError, match=refusals[reader]):
                READERS[reader](file(python2_pickle(value)))


class Call:
    """Pickled, it is a call; the callable may be the result of another one."""

    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced

    def __call__(self):
        raise AssertionError("pickle only asks whether this can be called")


def attack(name, folder):
    """A value that makes ``folder / "made"`` when it is unpickled, in the way of that name."""
    made = str(folder / "made")
    mkdir = Call(os.mkdir, made)
    if name == "numpy.load of a pickle in another file":
        np.save(folder / "inner.npy", np.array([mkdir], dtype=object), allow_pickle=True)
        return Call(np.load, str(folder / "inner.npy"), None, True)
    matrix = csr_matrix(GRID)
    matrix.more = mkdir
    return {
        "os.mkdir": mkdir,
        "os.system": Call(os.system, f"mkdir {made}"),
        "eval": Call(eval, f"__import__('os').mkdir({made!r})"),
        "exec": Call(exec, f"import os; os.mkdir({made!r})"),
        "a chain of getattr": Call(Call(getattr, Call(__import__, "os"), "mkdir"), made),
        "a pickle within": Call(pickle.loads, pickle.dumps(mkdir)),
        "an array of objects": np.array([mkdir, 1], dtype=object),
        "an attribute of a matrix": matrix,
        "an item of a list": defaultdict(list, {0: [mkdir, 1]}),
        "a key": Call(dict, [(mkdir, [1])]),
        "an item of another dictionary": OrderedDict({0: mkdir}),
    }[name]


ATTACKS = (
    "os.mkdir",
    "os.system",
    "eval",
    "exec",
    "a chain of getattr",
    "a pickle within",
    "numpy.load of a pickle in another file",
    "an array of objects",
    "an attribute of a matrix",
    "an item of a list",
    "a key",
    "an item of another dictionary",
)


@pytest.mark.parametrize("write", [python2_pickle, *range(pickle.HIGHEST_PROTOCOL + 1)], ids=str)
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_that_works_on_pickle_does_nothing_here(tmp_path, file, name, write):
    value, made = attack(name, tmp_path), tmp_path / "made"
    if write is python2_pickle:
        content = python2_pickle(value)
        words = "names (posix|__builtin__|_?pickle|numpy|collections)[.]"
    else:
        content, words = pickle.dumps(value, protocol=write), "nothing in it was run"
        pickle.loads(content)  # noqa: S301  (the attack is alive)
        assert made.is_dir()
        made.rmdir()
    for reader in READERS.values():
        with pytest.raises(GraphError, match=words):
            reader(file(content))
    assert not made.exists()


def test_a_name_is_refused_by_name_and_not_imported(file):
    with pytest.raises(GraphError, match=r"ind\.some\.x names posix\.system, which is no array, matrix or list"):
        read_array(file(b"cposix\nsystem\n(S'true'\ntR."))
    assert "antigravity" not in sys.modules
    with pytest.raises(GraphError, match=r"names antigravity\.fly"):
        read_array(file(b"\x80\x02cantigravity\nfly\n."))
    assert "antigravity" not in sys.modules


NAMED = b"cnumpy\nndarray\n"
LISTS = b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is damaged or no pickle: pickle exhausted before seeing STOP"),
        (b"\x80\x02K\x01", "is damaged or no pickle"),
        (b"smiles,y\nCCO,1\n", "is damaged: it takes what it did not put"),
        (b"\x80\x02.", "takes what it did not put"),
        (b"\x80\x02K\x01(.", "takes what it did not put"),
        (b"\x80\x02K\x01\x86.", "takes what it did not put"),
        (b"\x80\x02t.", "goes back to a mark that it did not set"),
        (b"\x80\x02h\x07.", "recalls what it did not remember"),
        (b"\x80\x02" + NAMED + b"}b.", "it takes 'name' for something else"),  # the state of a class
        (b"\x80\x02K\x01}b.", "it takes 'int' for something else"),
        (b"\x80\x02K\x01)R.", "it takes 'int' for something else"),  # calls a number
        (b"\x80\x02" + NAMED + b"]R.", "makes something out of what is no tuple"),
        (b"\x80\x02" + NAMED + b")R)R.", "it takes 'made' for something else"),  # calls what was made
        (b"\x80\x02)K\x01a.", "it takes 'tuple' for something else"),
        (b"\x80\x02" + LISTS + b"(K\x01u.", "a dictionary whose keys are neither numbers nor texts"),
        (b"\x80\x02" + LISTS + b"(]K\x01u.", "a dictionary whose keys are neither numbers nor texts"),
        (b"\x80\x02\x82\x01.", "uses the instruction EXT1, which data do not need"),
        (b"\x80\x02K\x01Q.", "uses the instruction BINPERSID"),
        (b"(S'true'\nios\nsystem\n.", "uses the instruction STRING"),
        (b"(ios\nsystem\n.", "uses the instruction INST"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "uses the instruction SHORT_BINUNICODE"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".", "is damaged or no pickle"),  # claims 4 EiB
        (b"\x80\x02T" + struct.pack("<i", 2**31 - 1) + b"short", "is damaged or no pickle"),
        (b"\x80\x02Nr\xff\xff\xff\xff.", "holds something where an array should be"),  # remembers in place 2**32 - 1
        (b"\x80\x02" + NAMED + b".", "holds something where an array should be"),
        (b"\x80\x02N" + b"q\x00h\x00\x86" * 5000 + b".", "holds something where an array should be"),  # 2**5000 leaves
        (b"\x80\x02]q\x00h\x00a.", "holds something where an array should be"),  # holds itself
    ],
)
def test_a_program_that_is_no_array_is_refused_in_words(file, content, words):
    with pytest.raises(GraphError, match=words):
        read_array(file(content))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1, None], dtype=object), "an array of dtype '|O8', which are no plain numbers"),
        (np.array(["a", "bc"]), "an array of dtype '<U2'"),
        (np.array([b"a"]), "an array of dtype '|S1'"),
        (np.array([1j]), "an array of dtype '<c16'"),
        (np.array([0], "M8[s]"), "dtype"),
        (np.zeros(2, [("a", "i4"), ("b", "O")]), "an array without a dtype of plain numbers"),
        (np.zeros((1, 1, 1)), "an array that is no vector or matrix"),
        (np.float64(1), "names numpy"),
    ],
)
def test_arrays_of_anything_but_numbers_are_refused(file, array, words):
    with pytest.raises(GraphError, match=words.replace("|", r"\|")):
        read_array(file(python2_pickle(array)))


def changed(value, old, new):
    content = python2_pickle(value)
    assert content.count(old) == 1
    return content.replace(old, new)


def test_an_array_holds_as_many_bytes_as_its_shape_says(file):
    content = changed(GRID.astype("<i4"), b"K\x02K\x03\x86", b"K\x02K\x04\x86")
    with pytest.raises(
        GraphError, match=r"an array of 24 bytes, which are not the int32 numbers of its shape \(2, 4\)"
    ):
        read_array(file(content))
    largest = b"J" + struct.pack("<i", 2**31 - 1)
    with pytest.raises(GraphError, match="an array of 24 bytes, which are not"):
        read_array(file(changed(GRID.astype("<i4"), b"K\x02K\x03\x86", largest + largest + b"\x86")))
    for size in (b"J" + struct.pack("<i", -2), b"\x8a\x09" + (2**64).to_bytes(9, "little"), b"N", b"\x88"):
        with pytest.raises(GraphError, match="an array that is no vector or matrix, of sizes up to 2147483647"):
            read_array(file(changed(GRID.astype("<i4"), b"K\x02K\x03\x86", b"K\x02" + size + b"\x86")))


def with_parts(**parts):
    matrix = csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0]]))
    for name, value in parts.items():
        setattr(matrix, name, value)
    return python2_pickle(matrix)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"indices": np.array([0, 3, 1])}, "a matrix that cannot be: "),
        ({"indices": np.array([0, -1, 1])}, "a matrix that cannot be: "),
        ({"indices": np.array([0, 2])}, "a matrix that cannot be: "),
        ({"indptr": np.array([0, 4, 3])}, "a matrix that cannot be: "),
        ({"indptr": np.array([0, 2, 9])}, "a matrix that cannot be: "),
        ({"indptr": np.array([0, 3])}, "a matrix that cannot be: "),
        ({"indptr": np.array([0.0, 2, 3])}, "a matrix whose indices are no integers"),
        ({"data": np.ones((3, 1))}, "a matrix that cannot be: "),
        ({"data": [1, 2, 3]}, "holds something where an array should be"),
        ({"_shape": (2,)}, "a matrix whose shape is not two sizes up to 2147483647"),
        ({"_shape": (2, 2**31)}, "a matrix whose shape is not two sizes up to 2147483647"),
        ({"_shape": (2, -3)}, "a matrix whose shape is not two sizes"),
        ({"_shape": None}, "a matrix whose shape is not two sizes"),
    ],
)
def test_matrices_that_cannot_be_are_refused(file, parts, words):
    with pytest.raises(GraphError, match=words):
        read_matrix(file(with_parts(**parts)))


@pytest.mark.parametrize(
    "lists",
    [{0: [1], 1: [2.0]}, {0: [1], 1: [True]}, {0: (1, 2), 1: []}, {0: {1: 2, 2: 3}, 1: []}, {"0": [1], "1": []}],
)
def test_lists_of_anything_but_integers_are_refused(file, lists):
    with pytest.raises(GraphError, match=r"holds no lists of integers by an integer|uses the instruction BINFLOAT"):
        read_lists(file(python2_pickle(lists)))


def test_a_list_given_many_times_is_refused_before_it_makes_endless_edges(file):
    row = list(range(1000))
    with pytest.raises(GraphError, match="holds one list for several integers"):
        read_lists(file(python2_pickle(dict.fromkeys(range(1000), row))))


WHOLE = {
    "array": python2_pickle(GRID.astype("<i4")),
    "matrix": python2_pickle(csr_matrix(GRID)),
    "lists": python2_pickle(defaultdict(list, {0: [1, 2], 1: [0]})),
}


@pytest.mark.parametrize("reader", READERS)
@given(data=st.data())
def test_a_damaged_file_gives_numbers_or_one_kind_of_error(tmp_path_factory, reader, data):
    content = bytearray(WHOLE[reader])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"damaged.{reader}"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    try:
        found = READERS[reader](path)
    except GraphError as refusal:
        found = str(refusal)
        assert found.startswith(str(path))
        assert len(found) < len(str(path)) + 300
    assert found is not None
