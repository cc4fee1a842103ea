"""Planetoid's citation graphs, such as Cora and Citeseer: papers, the words in them, who cites whom, one field each."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import index_to_mask, remove_self_loops, to_undirected

from graphattn.data.pickled_arrays import read_array, read_lists, read_matrix
from graphattn.errors import GraphError

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION_NODES = 500  # of the public split
SOURCE = "https://github.com/kimiyoung/planetoid"
_MOST_NUMBERS = 2**28  # in x: 1 GiB


def read_planetoid(folder: str | Path, name: str) -> Data:
    """One of Planetoid's graphs with its public split, out of the eight raw files ``ind.<name>.*``.

    Seven of them are pickles; they are read without running them (see ``pickled_arrays.py``).

    Nodes keep their published numbers. A citation is two edges, one each way, however often and whichever way the files
    list it; a paper that cites itself gets no self loop by that, as in PyG. Training nodes are the first ones, 20 per
    class; the 500 after them are for validation; those of ``test.index`` are for test. 15 nodes of Citeseer are in none
    of the files of words and classes: their ``x`` is zero, their ``y`` is 0 and means nothing, and they are in no part
    of the split.

    Args:
        folder: where the files are.
        name: ``"cora"`` or ``"citeseer"``, in any case.

    Returns:
        ``x`` (N, words) float32 as published: 1 where the paper has the word, else 0; ``edge_index`` (2, E), sorted by
        sender; ``y`` (N,) int64; ``train_mask``, ``val_mask`` and ``test_mask`` (N,) bool.

    Raises:
        GraphError: a file is missing, holds anything but arrays and lists of numbers, or does not fit the others.

    Source: Yang et al. 2016, arXiv:1603.08861; the files: https://github.com/kimiyoung/planetoid.
    """
    files = {part: Path(folder) / f"ind.{name.lower()}.{part}" for part in PARTS}
    missing = [file.name for file in files.values() if not file.is_file()]
    if missing:
        raise GraphError(f"{folder} lacks {', '.join(missing)}; the files are published at {SOURCE}.")
    train_y, test_y, all_y = (_classes(files[part]) for part in ("y", "ty", "ally"))
    train_x, test_x, all_x = (_words(files[part]) for part in ("x", "tx", "allx"))
    test = _test_nodes(files["test.index"])
    _check_parts(files, (train_x, test_x, all_x), (train_y, test_y, all_y), test)
    num_nodes = max(len(all_y), int(test.max()) + 1)
    first, last = len(train_y), len(train_y) + VALIDATION_NODES
    return Data(
        x=_in_place(all_x, test_x, test, num_nodes),
        edge_index=_citations(files["graph"], num_nodes),
        y=_in_place(all_y, test_y, test, num_nodes),
        train_mask=index_to_mask(torch.arange(first), num_nodes),
        val_mask=index_to_mask(torch.arange(first, last), num_nodes),
        test_mask=index_to_mask(test, num_nodes),
    )


def _words(file: Path) -> Tensor:
    """(papers, words) float32."""
    matrix = read_matrix(file)
    _check_size(file, *matrix.shape)
    words = torch.from_numpy(matrix.astype(np.float64).toarray()).float()
    if not bool(words.isfinite().all()):
        raise GraphError(f"{file} holds words that are no finite numbers; it is damaged.")
    return words


def _classes(file: Path) -> Tensor:
    """(papers,) int64, out of one-hot rows."""
    rows = torch.from_numpy(read_array(file).astype(np.float64))
    if rows.ndim != 2 or not rows.numel() or not bool((((rows == 0) | (rows == 1)).all(1) & (rows.sum(1) == 1)).all()):
        raise GraphError(f"{file} must hold a row per paper with a 1 at its class and 0 elsewhere; it is damaged.")
    return rows.argmax(1)


def _test_nodes(file: Path) -> Tensor:
    """(test nodes,) int64, in the order of the file, which is that of the rows of tx and ty."""
    lines = file.read_text(encoding="ascii", errors="replace").split()
    wrong = [line for line in lines if not (line.isdecimal() and len(line) < 10)]
    if wrong:
        raise GraphError(f"{file} must list the numbers of the test nodes, a line each; got {wrong[0]!r:.40}.")
    nodes = [int(line) for line in lines]
    if not nodes or len(set(nodes)) < len(nodes):
        raise GraphError(f"{file} must list each test node once; it names none, or one twice.")
    return torch.tensor(nodes)


def _check_parts(
    files: dict[str, Path],
    words: tuple[Tensor, Tensor, Tensor],
    classes: tuple[Tensor, Tensor, Tensor],
    test: Tensor,
) -> None:
    """Refuse parts (of training, test and all but test) that do not belong together."""
    (train_x, test_x, all_x), (train_y, test_y, all_y) = words, classes
    sizes = {
        ("x", "y"): (len(train_x), len(train_y)),
        ("tx", "ty"): (len(test_x), len(test_y)),
        ("tx", "test.index"): (len(test_x), len(test)),
        ("allx", "ally"): (len(all_x), len(all_y)),
    }
    for parts, (one, other) in sizes.items():
        if one != other:
            raise GraphError(
                f"{files[parts[0]]} has {one} papers, but {parts[1]} has {other}; are all files of one graph?"
            )
    if not train_x.shape[1] == test_x.shape[1] == all_x.shape[1]:
        raise GraphError(f"{files['x']}, tx and allx have different numbers of words; are all files of one graph?")
    if not (torch.equal(train_x, all_x[: len(train_x)]) and torch.equal(train_y, all_y[: len(train_y)])):
        raise GraphError(f"{files['x']} and y must be the first rows of allx and ally; are all files of one graph?")
    if len(all_y) < len(train_y) + VALIDATION_NODES:
        raise GraphError(
            f"{files['ally']} has {len(all_y)} papers; the public split needs the {len(train_y)} of training and "
            f"{VALIDATION_NODES} of validation."
        )
    if int(test.min()) < len(all_y):
        raise GraphError(
            f"{files['test.index']} names node {int(test.min())}, but test nodes come after the {len(all_y)} of allx."
        )
    _check_size(files["test.index"], int(test.max()) + 1, all_x.shape[1])


def _check_size(file: Path, rows: int, columns: int) -> None:
    """Refuse what would not fit into memory, before it is made."""
    if rows * max(columns, 1) > _MOST_NUMBERS:
        raise GraphError(
            f"{file} asks for {rows} nodes of {columns} words, more than {_MOST_NUMBERS} numbers; it is damaged, or no "
            "graph of Planetoid's that fits into a dense x."
        )


def _in_place(of_all: Tensor, of_test: Tensor, test: Tensor, num_nodes: int) -> Tensor:
    """One row per node: those of all but test, then those of test at their places; zeros where there is none."""
    rows = of_all.new_zeros(num_nodes, *of_all.shape[1:])
    rows[: len(of_all)] = of_all
    rows[test] = of_test
    return rows


def _citations(file: Path, num_nodes: int) -> Tensor:
    """(2, E) both ways, without loops and repetitions."""
    pairs = [(paper, cited) for paper, row in read_lists(file).items() for cited in row]
    outside = [node for pair in pairs for node in pair if not 0 <= node < num_nodes]
    if outside:
        raise GraphError(f"{file} names node {outside[0]}, but there are {num_nodes} nodes, counted from 0.")
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    both_ways: Tensor = to_undirected(remove_self_loops(edge_index)[0], num_nodes=num_nodes)
    return both_ways
