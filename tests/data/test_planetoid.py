"""Planetoid's files: the published graphs against PyG's reader, and small ones of our own that do not fit."""

import warnings
from collections import defaultdict

import numpy as np
import pytest
import torch
from python2_pickles import csr_matrix, python2_pickle
from shared_data import shared_file

from graphattn.data.planetoid import VALIDATION_NODES, read_planetoid
from graphattn.errors import GraphError

MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.mark.parametrize(
    ("name", "nodes", "words", "edges", "classes"), [("cora", 2708, 1433, 10556, 7), ("citeseer", 3327, 3703, 9104, 6)]
)
def test_the_published_graphs_are_those_that_pyg_reads(name, nodes, words, edges, classes):
    from torch_geometric.io import read_planetoid_data  # noqa: PLC0415  (it loads what other tests do without)

    folder = shared_file(f"graphs/planetoid/ind.{name}.x").parent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG's way to SciPy's classes is deprecated
        theirs = read_planetoid_data(str(folder), name)
    ours = read_planetoid(folder, name.title())
    assert (ours.num_nodes, ours.num_features, ours.num_edges) == (nodes, words, edges)
    assert [int(ours[mask].sum()) for mask in MASKS] == [20 * classes, 500, 1000]
    for field in ("x", "y", *MASKS):
        assert ours[field].dtype == theirs[field].dtype
        assert torch.equal(ours[field], theirs[field])
    assert set(ours.x.unique().tolist()) == {0.0, 1.0}
    assert set(map(tuple, ours.edge_index.T.tolist())) == set(map(tuple, theirs.edge_index.T.tolist()))
    assert ours.edge_index.shape == theirs.edge_index.shape
    assert ours.is_undirected()


def test_the_nodes_that_citeseer_says_nothing_about():
    data = read_planetoid(shared_file("graphs/planetoid/ind.citeseer.x").parent, "citeseer")
    nowhere = (torch.arange(data.num_nodes) >= 2312) & ~data.test_mask
    assert int(nowhere.sum()) == 15
    assert (data.x[nowhere] == 0).all()
    assert (data.y[nowhere] == 0).all()
    assert not (data.train_mask | data.val_mask)[nowhere].any()


def small_parts():
    """Six papers of training, 500 of validation, one more, three of test; node 508 is in no file but the graph."""
    rng = np.random.default_rng(0)
    words, classes = rng.integers(0, 2, (507, 5)).astype(np.float32), np.eye(3, dtype=np.int32)[np.arange(507) % 3]
    test_words, test_classes = np.eye(3, 5, dtype=np.float32), np.eye(3, dtype=np.int32)
    graph = defaultdict(list, {0: [1, 1, 2], 1: [0], 2: [0], 3: [3], 508: [510], 510: [508, 4]})
    return {
        "x": csr_matrix(words[:6]),
        "tx": csr_matrix(test_words),
        "allx": csr_matrix(words),
        "y": classes[:6],
        "ty": test_classes,
        "ally": classes,
        "graph": graph,
        "test.index": "510\n507\n509\n",
    }


def written(folder, parts):
    """The folder, with the files of a graph named small."""
    for part, value in parts.items():
        content = value.encode() if isinstance(value, str) else python2_pickle(value)
        (folder / f"ind.small.{part}").write_bytes(content)
    return folder


def test_a_small_graph_node_by_node(tmp_path):
    parts = small_parts()
    data = read_planetoid(str(written(tmp_path, parts)), "small")
    assert data.num_nodes == 511
    assert torch.equal(data.x[:507], torch.from_numpy(parts["allx"].toarray()))
    assert data.x[507:].tolist() == [[0, 1, 0, 0, 0], [0] * 5, [0, 0, 1, 0, 0], [1, 0, 0, 0, 0]]
    assert data.y[504:].tolist() == [0, 1, 2, 1, 0, 2, 0]
    assert data.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0], [4, 510], [508, 510], [510, 4], [510, 508]]
    assert data.train_mask.nonzero().flatten().tolist() == list(range(6))
    assert data.val_mask.nonzero().flatten().tolist() == list(range(6, 506))
    assert data.test_mask.nonzero().flatten().tolist() == [507, 509, 510]


def test_a_graph_without_citations_is_ordinary(tmp_path):
    parts = small_parts() | {"graph": {0: [], 1: [1]}}
    assert read_planetoid(written(tmp_path, parts), "small").edge_index.shape == (2, 0)


def test_a_missing_file_is_named(tmp_path):
    parts = small_parts()
    del parts["ty"], parts["graph"]
    folder = written(tmp_path, parts)
    with pytest.raises(
        GraphError, match=r"lacks ind\.small\.ty, ind\.small\.graph; .* published at https://github\.com"
    ):
        read_planetoid(folder, "small")


def eye(rows, *, times=1):
    return times * np.eye(3, dtype=np.int32)[np.arange(rows) % 3]


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("y", eye(5), r"ind\.small\.x has 6 papers, but y has 5; are all files of one graph"),
        ("ty", eye(2), "tx has 3 papers, but ty has 2"),
        ("test.index", "507\n508", r"tx has 3 papers, but test\.index has 2"),
        ("ally", eye(506), "allx has 507 papers, but ally has 506"),
        ("tx", csr_matrix(np.eye(3, 4)), r"ind\.small\.x, tx and allx have different numbers of words"),
        ("x", csr_matrix(np.full((6, 5), 2.0)), "x and y must be the first rows of allx and ally"),
        ("y", eye(6)[::-1], "x and y must be the first rows of allx and ally"),
        ("ally", eye(507, times=2), r"ally must hold a row per paper with a 1 at its class and 0 elsewhere"),
        ("y", np.zeros((0, 0)), r"ind\.small\.y must hold a row per paper"),
        ("y", np.arange(6), r"ind\.small\.y must hold a row per paper"),
        ("tx", csr_matrix(np.full((3, 5), np.nan)), r"tx holds words that are no finite numbers"),
        ("test.index", "510\n507\n-1", r"test\.index must list the numbers of the test nodes, a line each; got '-1'"),
        ("test.index", "510\n507\n1e3", "a line each; got '1e3'"),
        ("test.index", "510\n507\n99999999999", "a line each; got '99999999999'"),
        ("test.index", "510\n507\n0507", r"test\.index must list each test node once; it names none, or one twice"),
        ("test.index", "", "each test node once; it names none, or one twice"),
        ("test.index", "510\n507\n506", "names node 506, but test nodes come after the 507 of allx"),
        ("test.index", "510\n507\n999999999", "asks for 1000000000 nodes of 5 words, more than 268435456 numbers"),
        ("graph", {0: [511]}, r"graph names node 511, but there are 511 nodes, counted from 0"),
        ("graph", {-1: [0]}, "names node -1"),
        ("graph", {0: [2**80]}, f"names node {2**80}"),
    ],
)
def test_files_that_do_not_fit_each_other(tmp_path, part, value, words):
    with pytest.raises(GraphError, match=words):
        read_planetoid(written(tmp_path, small_parts() | {part: value}), "small")


def test_the_public_split_needs_500_papers_of_validation(tmp_path):
    parts = small_parts()
    shorter = {"allx": csr_matrix(parts["allx"].toarray()[:505]), "ally": parts["ally"][:505]}
    with pytest.raises(
        GraphError, match=rf"ally has 505 papers; the public split needs the 6 of training and {VALIDATION_NODES}"
    ):
        read_planetoid(written(tmp_path, parts | shorter), "small")


def test_a_matrix_that_claims_endless_columns_is_refused_before_it_is_made(tmp_path):
    wide = csr_matrix(np.eye(3, 5))
    wide._shape = (3, 2**31 - 1)
    with pytest.raises(GraphError, match=r"tx asks for 3 nodes of 2147483647 words, more than 268435456 numbers"):
        read_planetoid(written(tmp_path, small_parts() | {"tx": wide}), "small")
