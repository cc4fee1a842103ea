"""Masked losses: only observed labels count, in the value and in the gradient."""

import pytest
import torch
from torch import nn

from graphattn.errors import SettingError, ShapeError
from graphattn.training.losses import loss_for

NAN = float("nan")
ALL_LOSSES = [("regression", "mse"), ("regression", "huber"), ("regression", "mae"), ("binary", "auto")]


def test_values_by_hand():
    outputs, targets = torch.tensor([[1.0], [5.0]]), torch.tensor([[1.5], [2.0]])
    assert loss_for("regression", "mse")(outputs, targets).item() == (0.25 + 9) / 2
    assert loss_for("regression", "auto")(outputs, targets).item() == (0.25 + 9) / 2
    assert loss_for("regression", "mae")(outputs, targets).item() == (0.5 + 3) / 2
    assert loss_for("regression", "huber")(outputs, targets).item() == (0.125 + 2.5) / 2
    logits, labels = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [0.0]])
    by_hand = -(torch.tensor(0.5).log() + torch.sigmoid(torch.tensor(-2.0)).log()) / 2
    torch.testing.assert_close(loss_for("binary", "auto")(logits, labels), by_hand)


def test_the_mean_is_over_the_observed_labels_only():
    """Case D7: y = [[1, nan], [nan, 2], [nan, nan]]."""
    targets = torch.tensor([[1.0, NAN], [NAN, 2.0], [NAN, NAN]])
    outputs = torch.tensor([[0.0, 7.0], [7.0, 0.0], [7.0, 7.0]])
    loss = loss_for("regression", "mse")
    assert loss(outputs, targets).item() == (1 + 4) / 2
    total, count = loss.total(outputs, targets)
    assert (total.item(), count.item()) == (5.0, 2)


@pytest.mark.parametrize(("task", "name"), ALL_LOSSES)
def test_a_target_that_is_wholly_missing_leaves_a_finite_loss_and_gradient(task, name):
    """Case D8."""
    outputs = torch.randn(4, 3, requires_grad=True)
    targets = torch.tensor([[1.0, NAN, 0.0]]).repeat(4, 1)
    loss = loss_for(task, name)(outputs, targets)
    loss.backward()
    torch.testing.assert_close(loss, loss_for(task, name)(outputs[:, [0, 2]], targets[:, [0, 2]]))
    assert outputs.grad.isfinite().all()
    assert (outputs.grad[:, 1] == 0).all()
    assert (outputs.grad[:, [0, 2]] != 0).all()


@pytest.mark.parametrize(("task", "name"), ALL_LOSSES)
def test_a_batch_without_any_label_contributes_zero(task, name):
    outputs = torch.randn(4, 2, requires_grad=True)
    loss = loss_for(task, name)(outputs, torch.full((4, 2), NAN))
    loss.backward()
    assert loss.item() == 0
    assert (outputs.grad == 0).all()


@pytest.mark.parametrize("outside", [NAN, float("inf"), -float("inf"), 1e38])
@pytest.mark.parametrize(("task", "name"), ALL_LOSSES)
def test_an_output_without_a_label_may_be_anything(task, name, outside):
    outputs = torch.tensor([[0.5, outside]], requires_grad=True)
    loss = loss_for(task, name)(outputs, torch.tensor([[1.0, NAN]]))
    loss.backward()
    assert loss.isfinite()
    assert outputs.grad.isfinite().all()
    assert outputs.grad[0, 1] == 0


def test_targets_take_the_dtype_of_the_outputs():
    loss = loss_for("regression", "mse")
    single = loss(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.float64))
    double = loss(torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1))
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)


def test_outputs_that_would_broadcast_are_refused():
    loss = loss_for("regression", "mse")
    outputs = nn.Linear(3, 1)(torch.zeros(5, 3)).squeeze(1)
    with pytest.raises(
        ShapeError, match=r"outputs of shape \(5,\) for targets of shape \(5, 1\); it must give one row"
    ):
        loss(outputs, torch.zeros(5, 1))


def test_unknown_names_are_refused():
    with pytest.raises(SettingError, match="task must be one of regression, binary, got 'ranking'"):
        loss_for("ranking", "mse")
    with pytest.raises(SettingError, match="loss must be one of auto, mse, huber, mae, got 'rmse'"):
        loss_for("regression", "rmse")
    for name in ("mse", "huber", "mae"):
        with pytest.raises(SettingError, match=f"^loss {name} is for regression, but these are classes"):
            loss_for("binary", name)
