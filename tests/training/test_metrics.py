"""Metrics target by target, with values worked out by hand; the undefined is named, never averaged away."""

import math

import numpy as np
import pytest

from graphattn.errors import SettingError, ShapeError
from graphattn.training.metrics import score

NAN = np.nan


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


def test_regression_by_hand():
    (found,) = score(column(1, 2, 6), column(1, 4, 7), task="regression", names=["y"])
    assert found.target == "y"
    assert (found.labels, found.unpredicted, found.undefined) == (3, 0, {})
    assert found.values["rmse"] == pytest.approx(math.sqrt(5 / 3))
    assert found.values["mae"] == pytest.approx(1)
    assert found.values["r2"] == pytest.approx(1 - 5 / 18)


def test_binary_by_hand():
    (found,) = score(column(0.1, 0.8, 0.5, 0.4), column(0, 1, 0, 1), task="binary", names=["y"])
    assert found.undefined == {}
    assert found.values["roc_auc"] == pytest.approx(3 / 4)  # of four pairs, (0.4, 0.5) is turned round
    assert found.values["pr_auc"] == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)
    assert found.values["accuracy"] == pytest.approx(2 / 4)  # 0.5 counts as class 1
    assert found.values["log_loss"] == pytest.approx(-np.log([0.9, 0.8, 0.5, 0.4]).mean())


def test_each_target_counts_its_own_labels_and_rows_without_a_prediction():
    predicted = np.array([[1.0, 5.0], [NAN, 6.0], [3.0, 7.0]])
    observed = np.array([[2.0, NAN], [2.0, 6.5], [3.0, 7.0]])
    first, second = score(predicted, observed, task="regression", names=["a", "b"])
    assert (first.target, first.labels, first.unpredicted) == ("a", 2, 1)
    assert (second.target, second.labels, second.unpredicted) == ("b", 2, 0)
    assert first.values["mae"] == 0.5
    assert second.values["mae"] == 0.25


def test_what_is_undefined_has_no_value_and_says_why():
    (constant,) = score(column(1, 2), column(4, 4), task="regression", names=["y"])
    assert constant.values["r2"] is None
    assert constant.undefined == {"r2": "needs two different labels, there is only 4"}
    (negative,) = score(column(0.2, 0.3), column(0, 0), task="binary", names=["y"])
    assert negative.undefined == {
        "roc_auc": "needs two different labels, there is only 0",
        "pr_auc": "needs a label of class 1, there is none",
    }
    assert negative.values["accuracy"] == 1
    (positive,) = score(column(0.2, 0.3), column(1, 1), task="binary", names=["y"])
    assert (positive.values["roc_auc"], positive.values["pr_auc"]) == (None, 1)


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_a_target_without_a_scored_row_has_no_metric_at_all(task):
    (found,) = score(column(NAN, 1), column(1, NAN), task=task, names=["y"])
    assert (found.labels, found.unpredicted) == (0, 1)
    assert set(found.values.values()) == {None}
    assert set(found.undefined.values()) == {"no row has both a label and a prediction"}
    assert found.undefined.keys() == found.values.keys()


def test_certain_and_wrong_is_a_large_but_finite_log_loss():
    (found,) = score(column(0.0, 1.0), column(1, 0), task="binary", names=["y"])
    assert 10 < found.values["log_loss"] < math.inf


def test_shapes_and_tasks_that_cannot_be_are_refused():
    with pytest.raises(
        ShapeError, match=r"predictions have shape \(2, 1\), labels \(3, 1\), and there are 1 target names"
    ):
        score(column(1, 2), column(1, 2, 3), task="regression", names=["y"])
    with pytest.raises(ShapeError, match="there are 2 target names"):
        score(column(1, 2), column(1, 2), task="regression", names=["y", "z"])
    with pytest.raises(SettingError, match="task must be one of regression, binary, got 'classification'"):
        score(column(1), column(1), task="classification", names=["y"])
