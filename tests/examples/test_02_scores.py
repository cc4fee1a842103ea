"""Scores and normalizers against their formulas, written out."""

import pytest
import torch
from example_modules import is_picture, load


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    comparison = load("02_scores").main(folder, quick=True)
    assert is_picture(folder / "02_scores.png")
    return comparison


def projected(found):
    """Queries and keys of the one input, the same for both scores."""
    layer = found.layers["additive", "softmax"]
    with torch.no_grad():
        return found.x @ layer.query.weight.T, found.x @ layer.key.weight.T, layer.score_vector[0].clone()


def test_scores_are_those_of_the_formulas(found):
    query, key, vector = projected(found)
    torch.testing.assert_close(found.scores["dot product"], query @ key.T / 2)
    additive = torch.stack([(one + key).tanh() @ vector for one in query])
    torch.testing.assert_close(found.scores["additive"], additive)


@pytest.mark.parametrize("name", ["dot product", "additive"])
def test_softmax_shares_one_and_relu_gives_exact_zeros(found, name):
    scores, softmax, relu = found.scores[name], found.weights[name, "softmax"], found.weights[name, "relu"]
    torch.testing.assert_close(softmax, scores.softmax(1))
    torch.testing.assert_close(softmax.sum(1), torch.ones(len(scores)))
    assert (softmax > 0).all()
    torch.testing.assert_close(relu, scores.clamp(min=0))
    assert 0 < int((relu == 0).sum()) < relu.numel()
    assert (relu.sum(1) - 1).abs().max() > 0.3


def test_a_dot_product_grows_with_the_square_of_the_length_and_an_additive_score_stays_bounded(found):
    lengths = torch.tensor(load("02_scores").LENGTHS)
    dot, additive = (torch.tensor(found.largest_score[name]) for name in ("dot product", "additive"))
    at_one = lengths.tolist().index(1)
    torch.testing.assert_close(dot, dot[at_one] * lengths**2)
    assert (additive <= found.bound + 1e-6).all()
    assert additive[-1] > 0.9 * found.bound
    assert found.largest_weight["dot product"][-1] > 0.99
    assert found.largest_weight["additive"][-1] < 0.6
