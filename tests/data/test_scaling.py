"""Targets on one scale: missing values, constant columns, wide ranges, and the way back."""

import json
import math
import re
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphattn.data.scaling import TargetScaler, check_targets, labeled_rows
from graphattn.errors import GraphattnWarning, SettingError, ShapeError, TrainingError

NAN = math.nan


def test_missing_values_are_left_out():
    """Case D7: two observed values in three rows of two targets."""
    targets = torch.tensor([[1, NAN], [NAN, 2], [3, 6], [NAN, NAN]])
    scaler = TargetScaler.fit(targets, ["a", "b"])
    assert scaler == TargetScaler(mean=(2.0, 4.0), std=(1.0, 2.0))
    wanted = torch.tensor([[-1, NAN], [NAN, -1], [1, 1], [NAN, NAN]])
    torch.testing.assert_close(scaler.scale(targets), wanted, equal_nan=True)
    assert labeled_rows(targets).tolist() == [0, 1, 2]


def test_a_target_wholly_missing_is_refused_by_name():
    """Case D8."""
    targets = torch.tensor([[1.0, NAN, NAN], [2.0, NAN, NAN]])
    words = "no training row has a value for 'b', 'c' (2 rows); leave such a target out."
    for refuse in (check_targets, TargetScaler.fit):
        with pytest.raises(TrainingError, match=re.escape(words)):
            refuse(targets, ["a", "b", "c"])


@pytest.mark.parametrize(("value", "rows"), [(0.0, 4), (0.1, 3), (-2.73, 13)])
def test_a_constant_target_warns_and_every_way_back_leads_to_it(value, rows):
    """Case D10; the mean of three times 0.1 is rounded, which leaves a standard deviation of 1e-17."""
    targets = torch.tensor([[value, row] for row in range(rows)], dtype=torch.float64)
    words = f"target 'dull' has the same value, {value:g}, in all {rows} training rows; a model predicts just"
    with pytest.warns(GraphattnWarning, match=re.escape(words)):
        scaler = TargetScaler.fit(targets, ["dull", "lively"])
    assert (scaler.mean[0], scaler.std[0], scaler.spread) == (value, 0, (1, scaler.std[1]))
    assert scaler.scale(targets)[:, 0].eq(0).all()
    assert scaler.scale(targets + 0.25)[:, 0].allclose(torch.tensor(0.25, dtype=torch.float64))
    assert scaler.unscale(torch.full((1, 2), -7.3, dtype=torch.float64))[0, 0] == value


@pytest.mark.parametrize("small", [1e-200, 5e-324])
def test_a_target_too_close_to_scale_is_no_constant_and_refused_by_name(small):
    words = (
        f"target 'a' reaches from {small:g} to {2 * small:g} in the training rows, too close to scale; give it in a s"
    )
    with pytest.raises(TrainingError, match=re.escape(words)):
        TargetScaler.fit(torch.tensor([[small], [2 * small]], dtype=torch.float64), ["a"])


def test_scales_far_apart():
    """Case D11: 1e6 and 1e-3 side by side, each scaled by its own training rows."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.randn(200, 2, generator=generator, dtype=torch.float64) * torch.tensor([1e6, 1e-3]) + 5
    scaler = TargetScaler.fit(targets, ["large", "small"])
    scaled = scaler.scale(targets)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(scaled.std(0, correction=0), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(scaler.unscale(scaled), targets, rtol=1e-12, atol=0)


def test_dtype_follows_the_input():
    scaler = TargetScaler(mean=(1e6,), std=(1.0,))
    assert scaler.scale(torch.tensor([[1e6 + 0.5]])).dtype == torch.float32
    assert scaler.scale(torch.tensor([[1e6 + 0.5]])).item() == 0.5
    assert scaler.unscale(torch.tensor([[0.0625]]).double()).item() == 1e6 + 0.0625


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.one_of(st.just(NAN), st.floats(-1e9, 1e9).map(lambda y: round(y, 9))), min_size=2, max_size=2),
        min_size=1,
        max_size=20,
    )
)
def test_there_and_back(rows):
    targets = torch.tensor(rows, dtype=torch.float64)
    if targets.isnan().all(0).any():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphattnWarning)
        scaler = TargetScaler.fit(targets, ["a", "b"])
    back = scaler.unscale(scaler.scale(targets))
    torch.testing.assert_close(back, targets, rtol=1e-9, atol=1e-6, equal_nan=True)
    assert TargetScaler.from_settings(json.loads(json.dumps(scaler.settings()))) == scaler


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (torch.zeros(3), "targets must have shape (rows, 1) for ['y'], got (3,)."),
        (torch.zeros(3, 2), "targets must have shape (rows, 1) for ['y'], got (3, 2)."),
    ],
)
def test_shapes_that_do_not_fit(targets, words):
    with pytest.raises(ShapeError, match=re.escape(words)):
        check_targets(targets, ["y"])


def test_a_target_too_wide_to_scale_is_refused_by_name():
    words = "target 'b' reaches from -1e+308 to 1e+308 in the training rows, too far to scale; give it in a larger unit"
    with pytest.raises(TrainingError, match=re.escape(words)):
        TargetScaler.fit(torch.tensor([[1, -1e308], [2, 1e308]], dtype=torch.float64), ["a", "b"])


def test_an_infinite_target():
    words = "target 'b' is -inf in training row 2 of 2; give a finite value, or NaN for a missing one."
    with pytest.raises(TrainingError, match=re.escape(words)):
        check_targets(torch.tensor([[1.0, 2.0], [1.0, -torch.inf]]), ["a", "b"])


def test_values_for_another_number_of_targets():
    scaler = TargetScaler(mean=(0.0, 0.0), std=(1.0, 1.0))
    for move in (scaler.scale, scaler.unscale):
        with pytest.raises(ShapeError, match=re.escape("the scaler knows 2 targets, got values of shape (5, 1).")):
            move(torch.zeros(5, 1))


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [
        ((1.0,), (1.0, 2.0), "one mean and one std per target, got 1 means and 2 stds."),
        ((), (), "one mean and one std per target, got 0 means and 0 stds."),
        ((0.0, 1.0), (1.0, -1.0), "target 1 (counted from 0): a mean must be finite and a std finite and at least 0, "),
        (
            (NAN,),
            (1.0,),
            "target 0 (counted from 0): a mean must be finite and a std finite and at least 0, got mean n",
        ),
        ((0.0,), (math.inf,), "got mean 0.0 and std inf."),
    ],
)
def test_scalers_that_cannot_be(mean, std, words):
    with pytest.raises(SettingError, match=re.escape(words)):
        TargetScaler(mean, std)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mean": [1.0]}, "a scaler is described by ['mean', 'std'], got ['mean']."),
        ({"mean": [1.0], "std": [1.0], "old": 1}, "got ['mean', 'old', 'std']."),
        ({"mean": 1.0, "std": [1.0]}, "a scaler's mean must be a list of numbers, got 1.0."),
        ({"mean": [1.0], "std": ["1"]}, "a scaler's std must be a list of numbers, got ['1']."),
        ({"mean": [1.0], "std": [True]}, "a scaler's std must be a list of numbers, got [True]."),
        ({"mean": [1.0], "std": [-1.0]}, "a std finite and at least 0"),
    ],
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(SettingError, match=re.escape(words)):
        TargetScaler.from_settings(settings)
