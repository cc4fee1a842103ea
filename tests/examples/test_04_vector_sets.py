"""Sets of every kind: what they are, and that company in a batch changes nothing."""

import pytest
import torch
from example_modules import is_picture, load

NAMES = (
    "words, one-hot",
    "words, embedded",
    "sound, log-mel",
    "pixels, gray",
    "pixels, RGB",
    "nodes of a graph",
    "atoms, one-hot",
)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    found = load("04_vector_sets").main(folder, quick=True)
    assert is_picture(folder / "04_vector_sets.png")
    return found


def test_all_kinds_are_there(kinds):
    assert tuple(kinds) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_set_alone_gives_the_same_and_nothing_is_padded(kinds, name):
    kind = kinds[name]
    sizes = [len(each) for each in kind.sets]
    together, alone = kind.together(), kind.alone()
    assert len(set(sizes)) == len(sizes) == 3
    assert together.shape == (sum(sizes), 16)
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5 * float(alone.abs().max()))
    assert together.std() > 0


def test_one_hot_words_times_the_table_are_the_embedded_words(kinds):
    module = load("04_vector_sets")
    one_hot, embedded = (torch.cat(kinds[name].sets) for name in NAMES[:2])
    torch.manual_seed(0)
    table = module.CodeEmbedding((len(module.KNOWN),), channels=8).table.detach()
    torch.testing.assert_close(one_hot @ table, embedded)
    assert one_hot.sum(1).eq(1).all()
    assert one_hot[-2:, 0].eq(1).all()  # zebra and sat are unknown
    assert one_hot[:-2, 0].eq(0).all()


def test_a_second_of_sound_is_100_vectors(kinds):
    assert [tuple(each.shape) for each in kinds["sound, log-mel"].sets] == [(100, 40), (50, 40), (30, 40)]
    rising = kinds["sound, log-mel"].sets[0].argmax(1)
    assert rising[90] > rising[50] > rising[10]


def test_pixels_nodes_and_atoms_are_those_of_their_sources(kinds):
    module = load("04_vector_sets")
    assert [len(each) for each in kinds["pixels, gray"].sets] == [8 * 8, 8 * 5, 6 * 8]
    assert all(each.shape[1] == 3 and each.min() >= 0 and each.max() <= 1 for each in kinds["pixels, RGB"].sets)
    for graph, nodes in zip(module.GRAPHS, kinds["nodes of a graph"].sets, strict=True):
        degrees = torch.tensor([float(degree) for _, degree in graph.degree])
        torch.testing.assert_close(nodes[:, 0], degrees / (len(graph) - 1))
    columns = len(module.ga.MoleculeFeaturizer().node_columns)
    assert [len(each) for each in kinds["atoms, one-hot"].sets] == [3, 13, 14]
    assert all(each.sum(1).eq(columns).all() for each in kinds["atoms, one-hot"].sets)
