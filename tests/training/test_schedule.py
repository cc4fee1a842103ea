"""The learning rate schedule against values worked out by hand."""

import math

import pytest

from graphattn.training.schedule import WarmupCosine


def test_warm_up_is_linear_and_ends_at_the_peak():
    schedule = WarmupCosine(peak=0.1, warmup_steps=4, total_steps=12)
    assert [schedule(step) for step in range(4)] == pytest.approx([0.025, 0.05, 0.075, 0.1])


def test_the_cosine_begins_at_the_peak_passes_half_and_ends_near_zero():
    schedule = WarmupCosine(peak=0.1, warmup_steps=4, total_steps=12)
    assert schedule(4) == pytest.approx(0.1)
    assert schedule(6) == pytest.approx(0.05 * (1 + math.sqrt(0.5)))  # a quarter of the way down
    assert schedule(8) == pytest.approx(0.05)
    assert schedule(11) == pytest.approx(0.05 * (1 + math.cos(math.pi * 7 / 8)))
    assert schedule(12) == pytest.approx(0)


def test_no_warm_up_starts_at_the_peak():
    assert WarmupCosine(peak=0.1, warmup_steps=0, total_steps=3)(0) == 0.1


def test_a_run_counts_steps_over_all_epochs():
    schedule = WarmupCosine.for_run(peak=1.0, warmup_epochs=1.5, epochs=10, steps_per_epoch=4)
    assert schedule == WarmupCosine(peak=1.0, warmup_steps=6, total_steps=40)


def test_warm_up_without_end_is_half_the_run():
    schedule = WarmupCosine.for_run(peak=1.0, warmup_epochs=1e308, epochs=10, steps_per_epoch=4)
    assert schedule == WarmupCosine(peak=1.0, warmup_steps=20, total_steps=40)


@pytest.mark.parametrize(("epochs", "steps", "warmup_steps"), [(1, 7, 3), (2, 7, 7), (1, 1, 0), (100, 7, 35)])
def test_warm_up_takes_at_most_half_of_a_short_run(epochs, steps, warmup_steps):
    schedule = WarmupCosine.for_run(peak=1.0, warmup_epochs=5.0, epochs=epochs, steps_per_epoch=steps)
    assert schedule.warmup_steps == warmup_steps
    rates = [schedule(step) for step in range(epochs * steps)]
    assert all(0 < rate <= 1 for rate in rates)
    assert max(rates) == 1
