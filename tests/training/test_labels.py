"""Labels that a run cannot learn from are refused before it starts."""

import pytest
import torch

from graphattn.errors import TrainingError
from graphattn.training.labels import check_labels

NAN, INF = float("nan"), float("inf")
GOOD = torch.tensor([[0.0, 1.0], [1.0, NAN]])


@pytest.mark.parametrize(
    ("train", "valid", "task", "message"),
    [
        (torch.empty(0, 2), GOOD, "regression", "the training set has no graph; a run needs at least one to learn"),
        (GOOD, torch.empty(0, 2), "regression", "the validation set has no graph; .* to find the best epoch"),
        (GOOD, torch.full((3, 2), NAN), "binary", "none of the 3 graphs of the validation set has a label"),
        (torch.full((4, 2), NAN), GOOD, "binary", "none of the 4 graphs of the training set has a label"),
        (GOOD[:, 0], GOOD, "binary", r"targets of the training set have shape \(2,\); give one row per graph"),
        (GOOD, GOOD[:, :0], "binary", r"targets of the validation set have shape \(2, 0\)"),
        (GOOD, GOOD[:, :1], "binary", "the training set has 2 targets but the validation set 1"),
        (
            torch.tensor([[1.0, NAN, NAN], [2.0, NAN, NAN]]),
            torch.zeros(1, 3),
            "regression",
            r"no graph of the training set has a label for target 1, 2 \(of 3, counted from 0\); leave it out",
        ),
        (
            torch.tensor([[1.0, NAN], [2.0, -INF]]),
            GOOD,
            "regression",
            r"row 1 of the training set has -inf as target 1 \(counted from 0\); .* regression task must be finite",
        ),
        (
            GOOD,
            GOOD + 1,
            "binary",
            "row 0 of the validation set has 2 as target 1 .* binary task must be 0 or 1, or NaN",
        ),
        (GOOD, GOOD * INF, "binary", "row 0 of the validation set has inf as target 1"),
    ],
)
def test_labels_that_cannot_be_learned_from_are_refused(train, valid, task, message):
    with pytest.raises(TrainingError, match=message):
        check_labels(train, valid, task)


def test_a_target_may_be_missing_in_the_validation_set_as_long_as_another_is_there():
    check_labels(GOOD, torch.tensor([[1.0, NAN]]), "binary")
    check_labels(GOOD * 7.5, torch.tensor([[1.0, NAN]]), "regression")
