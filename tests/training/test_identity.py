"""Two runs are the same run only if task, settings, data, network shapes and the caller's details are."""

from dataclasses import replace

import pytest
import torch
from toy_graphs import toy_dataset, toy_network

from graphattn.training.config import TrainingConfig
from graphattn.training.identity import differences, run_identity

TRAIN, VALID = toy_dataset(5), toy_dataset(3, seed=1)
EVERYTHING = "graphs, targets, nodes, edges"


def identity(network=None, train=TRAIN, valid=VALID, task="regression", details=None, **settings):
    return run_identity(
        network or toy_network(), train, valid, TrainingConfig(**settings), task=task, details=details or {}
    )


def with_targets(dataset, row, value):
    targets = dataset.targets.clone()
    targets[row, 0] = value
    return replace(dataset, targets=targets)


def with_code(dataset, node, code):
    x = dataset.graphs.node_fields["x"].clone()
    x[node] = code
    return replace(dataset, graphs=replace(dataset.graphs, node_fields={"x": x}))


def test_the_same_run_is_the_same_whatever_the_weights_and_the_memory():
    assert identity() == identity(toy_network(seed=7), toy_dataset(5), toy_dataset(3, seed=1))
    rows = torch.arange(5)
    assert identity(train=TRAIN.subset(rows)) == identity()


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"task": "binary"}, ["task"]),
        ({"learning_rate": 0.5}, ["settings.learning_rate"]),
        ({"epochs": 7, "seed": 1}, ["settings.epochs", "settings.seed"]),
        (
            {"train": TRAIN.subset([0, 1, 2, 4, 3])},
            ["the data are not the same (targets, nodes, edges of the training set)"],
        ),
        ({"train": with_targets(TRAIN, 4, 0.123)}, ["the data are not the same (targets of the training set)"]),
        ({"valid": with_targets(VALID, 0, torch.nan)}, ["the data are not the same (targets of the validation set)"]),
        ({"train": with_code(TRAIN, 3, 11)}, ["the data are not the same (nodes of the training set)"]),
        (
            {"learning_rate": 0.5, "train": TRAIN.subset([0, 1]), "valid": VALID.subset([1])},
            [
                "settings.learning_rate",
                f"the data are not the same ({EVERYTHING} of the training set; {EVERYTHING} of the validation set)",
            ],
        ),
        ({"details": {"network": {"dropout": 0.2}}}, ["details.network.dropout"]),
        ({"network": toy_network(targets=3)}, ["network.head.weight", "network.head.bias"]),
    ],
)
def test_what_differs_is_found_by_name(changed, names):
    found = differences(identity(), identity(**changed))
    assert [text.split(" was ")[0] for text in found] == names


def test_a_difference_says_what_was_and_what_is():
    assert differences(identity(), identity(learning_rate=0.5)) == ["settings.learning_rate was 0.001 and is now 0.5"]
    assert differences(identity(), identity(network=toy_network(batch_norm=True)))[0] == (
        "network.norm.running_mean was absent and is now 'float32 [16]'"
    )
    assert differences(identity(network=toy_network(targets=3)), identity())[0] == (
        "network.head.weight was 'float32 [3, 16]' and is now 'float32 [2, 16]'"
    )
    (text,) = differences(identity(details={"names": ["x" * 200]}), identity(details={"names": []}))
    assert text.endswith("x... and is now []")
    assert len(text) < 150
