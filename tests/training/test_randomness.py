"""Randomness of a run: a function of seed and epoch, and no trace in the caller's generators."""

import torch

from graphattn.training.randomness import own_randomness, seed_epoch

CPU = torch.device("cpu")


def draws(seed, epoch):
    with own_randomness(CPU):
        generator = seed_epoch(seed, epoch, CPU)
        return torch.randperm(50, generator=generator).tolist(), torch.rand(50).tolist()


def test_seed_and_epoch_decide_everything():
    torch.rand(7)
    assert draws(3, 5) == draws(3, 5)


def test_seeds_and_epochs_differ_in_order_and_in_dropout():
    kinds = [draws(0, 1), draws(0, 2), draws(1, 1), draws(1, 2), draws(1, 0), draws(2, 1)]
    assert len({str(order) for order, _ in kinds}) == len(kinds)
    assert len({str(dropout) for _, dropout in kinds}) == len(kinds)


def test_the_callers_generator_goes_on_as_if_nothing_had_been():
    torch.manual_seed(11)
    alone = torch.rand(3)
    torch.manual_seed(11)
    draws(0, 1)
    assert torch.equal(torch.rand(3), alone)


def test_large_seeds_are_fine():
    assert draws(2**63 + 5, 10**9) != draws(2**63 + 6, 10**9)
