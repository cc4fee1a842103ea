"""What attention over a recording costs: how it is measured and foreseen."""

import math

import pytest
import recording_cost
from recording_cost import Cost, grown


def test_costs_grow_on_with_the_power_that_they_grew_with():
    before = Cost("full", 1000, 1000**2, 0.1, 0.5, 1.0, 10.0)
    last = Cost("full", 2000, 2000**2, 0.4, 1.0, 8.0, 10.0)
    foreseen = grown(before, last, 8000)
    assert (foreseen.view, foreseen.frames, foreseen.pairs) == ("full", 8000, 8000**2)
    assert foreseen.build_seconds == pytest.approx(0.4 * 4**2)
    assert foreseen.forward_seconds == pytest.approx(1.0 * 4)
    assert foreseen.both_seconds == pytest.approx(8.0 * 4**3)
    assert foreseen.peak_mib == pytest.approx(10.0)


def test_what_passes_the_budget_is_not_measured(monkeypatch):
    monkeypatch.setattr(recording_cost, "BUDGET_MIB", 1e-3)
    found = recording_cost.measured("full", [100, 400, 800], rounds=1)
    if math.isnan(found[0].peak_mib):
        pytest.skip("this system does not tell the most memory of a process in /proc")
    assert [each.frames for each in found] == [100, 400]


def test_within_the_budget_every_length_is_measured():
    found = recording_cost.measured("window", [100, 200, 400], rounds=1)
    assert [(each.view, each.frames) for each in found] == [("window", frames) for frames in (100, 200, 400)]
