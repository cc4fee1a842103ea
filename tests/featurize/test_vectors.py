"""Words, pixels, atoms and nodes as vectors, and sets of different sizes in one batch."""

import networkx as nx
import numpy as np
import pytest
import torch

from graphattn.adjacency import Adjacency
from graphattn.attention.layer import GraphAttention
from graphattn.convert import from_networkx
from graphattn.errors import GraphError, SettingError, ShapeError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.featurize.sound import log_mel
from graphattn.featurize.vectors import Vocabulary, join_sets, one_hot_columns, pixels
from graphattn.model.embedding import CodeEmbedding

SENTENCES = [["I", "saw", "a", "saw"], ["a", "cat", "saw", "I"], []]


def test_a_vocabulary_of_training_words():
    vocabulary = Vocabulary.of(SENTENCES)
    assert vocabulary.known == ("saw", "I", "a", "cat")  # 3, 2, 2 and 1 times; I before a in Unicode
    assert len(vocabulary) == 5
    assert vocabulary.codes(["a", "dog", "saw"]).tolist() == [3, 0, 1]
    assert vocabulary == Vocabulary.of([sentence[::-1] for sentence in SENTENCES[::-1]])
    assert Vocabulary.of(SENTENCES, at_least=2).known == ("saw", "I", "a")
    assert Vocabulary.of([], reserved=("<start>",)).known == ("<start>",)


def test_words_to_codes_and_back():
    vocabulary = Vocabulary.of(SENTENCES, reserved=("<start>", "<end>"), unknown="?")
    assert vocabulary.codes(["<start>", "<end>", "saw", "?"]).tolist() == [1, 2, 3, 0]
    for sentence in SENTENCES:
        codes = vocabulary.codes(sentence)
        assert (codes.dtype, codes.shape) == (torch.long, (len(sentence),))
        assert vocabulary.words(codes) == sentence
        assert vocabulary.words(codes.tolist()) == sentence
    assert vocabulary.words(vocabulary.codes(["a", "dog"])) == ["a", "?"]


def test_reserved_and_unknown_words_may_stand_in_the_training_words_too():
    vocabulary = Vocabulary.of([["<end>", "x", "<end>", "?", "?", "?"]], reserved=["<end>"], unknown="?")
    assert vocabulary.known == ("<end>", "x")
    assert vocabulary.codes("?").tolist() == [0]


def test_letters_and_elements_are_tokens_as_well():
    assert Vocabulary.of(["banana"]).known == ("a", "n", "b")
    assert Vocabulary.of(["banana"]).codes("nab!").tolist() == [2, 1, 3, 0]
    assert Vocabulary(("C", "Cl")).codes(["Cl", "C", "Xe"]).tolist() == [2, 1, 0]


def test_one_hot_words_are_rows_with_a_single_one():
    vectors = Vocabulary(("b", "a")).one_hot(["a", "c", "b", "b"])
    assert vectors.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]]
    assert vectors.dtype == torch.float32
    assert Vocabulary(("b", "a")).one_hot([]).shape == (0, 3)


def test_vocabularies_that_cannot_be():
    with pytest.raises(SettingError, match="each token once, the unknown one too; got 'a' 2 times"):
        Vocabulary(("a", "b", "a"))
    with pytest.raises(SettingError, match="got '<unknown>' 2 times"):
        Vocabulary(("a", "<unknown>"))
    with pytest.raises(SettingError, match="a token is a text, got 7; use str"):
        Vocabulary.of([["a", 7]])
    with pytest.raises(SettingError, match="a token is a text, got None"):
        Vocabulary((None,))
    with pytest.raises(SettingError, match="a token is a text, got 5"):
        Vocabulary(("a",), unknown=5)
    with pytest.raises(SettingError, match=r"known is a list of tokens, got the text 'abc'; write \['abc'\]"):
        Vocabulary("abc")
    with pytest.raises(SettingError, match="at_least must be at least 1, got 0"):
        Vocabulary.of(SENTENCES, at_least=0)
    with pytest.raises(SettingError, match=r"reserved is a list of tokens, got the text '<end>'; write \['<end>'\]"):
        Vocabulary.of(SENTENCES, reserved="<end>")


@pytest.mark.parametrize(
    "codes", [torch.tensor([1.0]), [0.5], torch.tensor([True]), torch.tensor([[1]]), torch.tensor(1)]
)
def test_codes_are_one_row_of_integers(codes):
    with pytest.raises(ShapeError, match=r"codes must be integers of shape \(N,\); got "):
        Vocabulary(("a",)).words(codes)


@pytest.mark.parametrize("code", [-1, 2])
def test_codes_that_mean_nothing_are_named(code):
    with pytest.raises(GraphError, match=rf"codes\[1, 0\] is {code}, but its column has codes 0 to 1"):
        Vocabulary(("a",)).words([1, code])


def test_one_hot_atoms_times_the_table_are_the_learned_embedding():
    featurizer = MoleculeFeaturizer()
    codes, widths = featurizer("CC(=O)Oc1ccccc1C(=O)O").x, [column.width for column in featurizer.node_columns]
    vectors = one_hot_columns(codes, widths)
    assert vectors.shape == (13, sum(widths))
    assert (vectors.sum(1) == len(widths)).all()
    embedding = CodeEmbedding(widths, 8)
    torch.testing.assert_close(vectors @ embedding.table, embedding(codes))
    assert one_hot_columns(codes.int(), widths).equal(vectors)
    assert one_hot_columns(codes[:0], widths).shape == (0, sum(widths))


def test_columns_of_codes_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"integer codes of shape \(rows, 2\); got int64 of shape \(1, 3\)"):
        one_hot_columns(torch.zeros(1, 3, dtype=torch.long), (2, 2))
    with pytest.raises(ShapeError, match=r"got float32 of shape \(1, 2\)"):
        one_hot_columns(torch.zeros(1, 2), (2, 2))
    with pytest.raises(GraphError, match=r"codes\[1, 1\] is 3, but its column has codes 0 to 2"):
        one_hot_columns(torch.tensor([[0, 2], [1, 3]]), (2, 3))


def test_pixels_row_by_row():
    image = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3) * 10
    vectors = pixels(image)
    assert vectors.shape == (8, 3)
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors[5] * 255, image[1, 1].float())
    assert pixels(torch.full((1, 1), 255, dtype=torch.uint8)).tolist() == [[1.0]]
    assert pixels(torch.zeros(0, 3)).shape == (0, 1)
    _, edges = Adjacency.grid(2, 4, size=1).row(5)
    assert edges.tolist() == [5]  # pixel 5 is that of row 1, column 1 there too


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_float_pixels_stay_as_they_are(dtype):
    image = torch.randn(3, 2, dtype=dtype)
    assert torch.equal(pixels(image), image.reshape(6, 1))


def test_arrays_and_pictures_are_images():
    array = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    array.flags.writeable = False  # as PIL gives them
    torch.testing.assert_close(pixels(array), torch.arange(12.0).reshape(4, 3) / 255)
    turned = np.arange(6.0).reshape(2, 3)[::-1, ::-1]
    assert pixels(turned).flatten().tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (
            torch.zeros(3, 32, 32),
            r"with 1 to 4 channels; got float32 of shape \(3, 32, 32\).*image\.permute\(1, 2, 0\)",
        ),
        (torch.zeros(4), r"got float32 of shape \(4,\)"),
        (torch.zeros(2, 2, 0), r"got float32 of shape \(2, 2, 0\)"),
        (
            torch.zeros(2, 2, dtype=torch.long),
            r"an image is uint8 or floating point; got int64 .* Divide it by its white",
        ),
        (np.zeros((2, 2), bool), "an image is uint8 or floating point; got bool"),
    ],
)
def test_images_that_are_none(image, words):
    with pytest.raises(ShapeError, match=words):
        pixels(image)


def test_sets_of_different_sizes_are_joined_and_come_apart():
    sets = [torch.randn(size, 3) for size in (2, 0, 5, 1)]
    x, ptr = join_sets(sets)
    assert ptr.tolist() == [0, 2, 2, 7, 8]
    assert ptr.dtype == torch.long
    for given, back in zip(sets, x.split(ptr.diff().tolist()), strict=True):
        assert torch.equal(given, back)
    labels, label_ptr = join_sets([torch.arange(2), torch.arange(3)])
    assert (labels.tolist(), label_ptr.tolist()) == ([0, 1, 0, 1, 2], [0, 2, 5])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (torch.ones(2, 4), r"set 1 is float32 of shape \(2, 4\) on cpu, but set 0 is float32 of shape \(2, 3\) on cpu"),
        (torch.ones(2, 3, dtype=torch.float64), "set 1 is float64 of shape"),
        (torch.ones(3), r"set 1 is float32 of shape \(3,\)"),
        (torch.ones(2, 3, device="meta"), r"set 1 is float32 of shape \(2, 3\) on meta"),
    ],
)
def test_sets_of_one_batch_are_of_one_kind(other, words):
    with pytest.raises(ShapeError, match=words):
        join_sets([torch.ones(2, 3), other])


def test_a_batch_has_a_set():
    with pytest.raises(ShapeError, match="a batch needs at least one set, which may be empty; got none"):
        join_sets([])
    with pytest.raises(ShapeError, match=r"set 0 is float32 of shape \(\)"):
        join_sets([torch.tensor(1.0)])


def words():
    vocabulary = Vocabulary.of(SENTENCES)
    return [vocabulary.one_hot(sentence) for sentence in (*SENTENCES, ["a", "dog", "saw", "I", "saw"])]


def sounds():
    time = torch.arange(8000) / 16_000
    return [log_mel((440 * time[:samples]).sin(), 16_000, channels=20) for samples in (8000, 1600, 400)]


def images():
    generator = torch.Generator().manual_seed(0)
    sizes = ((4, 5), (1, 1), (3, 2))
    return [pixels(torch.randint(256, (*size, 3), dtype=torch.uint8, generator=generator)) for size in sizes]


def graphs():
    found = []
    for graph in (nx.path_graph(4), nx.star_graph(6), nx.empty_graph(1)):
        nx.set_node_attributes(graph, {node: [float(node), float(degree)] for node, degree in graph.degree}, "trait")
        found.append(from_networkx(graph, node_features=["trait"]).x)
    return found


def molecules():
    featurizer = MoleculeFeaturizer()
    widths = [column.width for column in featurizer.node_columns]
    return [one_hot_columns(featurizer(smiles).x, widths) for smiles in ("CCO", "C", "c1ccccc1O")]


KINDS = {"words": words, "sound": sounds, "images": images, "graphs": graphs, "molecules": molecules}


def assert_each_set_alone_is_the_same(layer, sets):
    x, ptr = join_sets(sets)
    together = layer(x, Adjacency.complete(ptr=ptr)).split(ptr.diff().tolist())
    for alone, joined in zip(sets, together, strict=True):
        assert joined.shape == (len(alone), layer.out_channels)
        torch.testing.assert_close(joined, layer(alone, Adjacency.complete(len(alone))), rtol=1e-5, atol=1e-6)
        if len(alone) > 1:
            assert joined.std() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_sets_of_every_kind_attend_in_one_batch_as_they_do_alone(kind):
    torch.manual_seed(0)
    sets = KINDS[kind]()
    assert len({len(each) for each in sets}) == len(sets) - (kind == "words")  # sizes differ
    assert_each_set_alone_is_the_same(GraphAttention(sets[0].shape[1], 8, heads=2), sets)


def test_sets_of_all_kinds_attend_in_one_batch_as_they_do_alone():
    torch.manual_seed(0)
    sets = []
    for make in KINDS.values():
        made = make()
        project = torch.nn.Linear(made[0].shape[1], 6)
        sets += [project(each).detach() for each in made]
    assert_each_set_alone_is_the_same(GraphAttention(6, 8, heads=2), sets)
