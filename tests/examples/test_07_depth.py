"""Depth: what the parts of a block mix, and how far a stack of blocks sees."""

import pytest
import torch
from example_modules import is_picture, load


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("depth")


@pytest.fixture(scope="module")
def results(output):
    return load("07_depth").main(output, quick=True)


def test_attention_mixes_the_set_and_the_fully_connected_part_does_not(results):
    assert bool((results.attention > 0).all())
    assert torch.equal(results.feed_forward > 0, torch.eye(6, dtype=torch.bool))


@pytest.mark.parametrize("depth", range(1, 7))
def test_every_block_sees_one_hop_farther(depth):
    assert load("07_depth").reach(depth) == depth


def test_a_network_is_right_as_far_as_it_is_deep_and_guesses_beyond(results):
    assert results.reach == (1, 2)
    assert results.accuracy.shape == (2, 5)
    sees = torch.arange(5) <= torch.tensor(results.reach)[:, None]
    assert bool((results.accuracy[sees] > 0.9).all())
    assert bool(((results.accuracy[~sees] - 0.25).abs() < 0.03).all())  # one color of four


def test_it_is_drawn(results, output):
    assert results.reach
    assert is_picture(output / "07_depth.png")


def test_answers_are_the_colors_that_pointers_lead_to():
    depth = load("07_depth")
    batch = depth.rings(3, 6, torch.Generator().manual_seed(5))
    sender, receiver = batch.edge_index.edge_index().tolist()
    kinds = batch.edge_attr.flatten().tolist()
    following = {at: of for of, at, kind in zip(sender, receiver, kinds, strict=True) if kind == depth.NEXT}
    before = {at: of for of, at, kind in zip(sender, receiver, kinds, strict=True) if kind == depth.PREVIOUS}
    assert sorted(following.values()) == sorted(before.values()) == list(range(48))
    for node in range(48):
        target = node
        for hops in range(7):
            assert batch.ahead[node, hops] == batch.x[target, 0]
            assert before[following[target]] == target
            target = following[target]
