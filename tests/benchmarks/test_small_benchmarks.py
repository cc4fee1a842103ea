"""The scripts behind single decisions run, check what they time, and print what was decided."""

import crossover
import edge_features
import first_use
import projection
import pytest
import torch

from graphattn.attention.projection import is_worthwhile


def test_the_crossover_prints_both_backends_and_what_auto_takes(capsys):
    crossover.main(["--rounds", "2", "--widths", "32", "--densities", "1", "0.25", "--largest", "64"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [(line[0], line[1], line[3], line[-1]) for line in lines] == [
        ("64", "24", "1.00", "fused_cpu"),
        ("64", "24", "0.25", "fused_cpu"),
        ("1", "64", "1.00", "dense"),
        ("1", "64", "0.25", "fused_cpu"),
    ]
    assert all(float(number) > 0 for line in lines for number in line[4:7])


def test_the_crossover_of_written_sequences_lets_half_the_pairs_attend(capsys):
    crossover.main(["--rounds", "2", "--widths", "32", "--causal", "--largest", "256"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [(line[0], line[1], line[3]) for line in lines] == [("64", "24", "0.50"), ("1", "256", "0.50")]


def test_the_projection_prints_three_products_of_each_size(capsys):
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this PyTorch has no oneDNN")
    projection.main(["--rounds", "2", "--rows", "8", "300", "--widths", "64"])
    lines = capsys.readouterr().out.splitlines()[3:-1]
    assert [line[15:27].strip() for line in lines] == ["forward", "to vectors", "to weights"] * 2
    large = "oneDNN" if is_worthwhile(300 * 64 * 192) else "default"
    assert [line.split()[-1] for line in lines] == ["default"] * 3 + [large] * 3


def test_edge_features_are_timed_beside_kinds_and_pyg(capsys):
    edge_features.main(["--rounds", "2", "--case", "small-window", "--widths", "16"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [line[:2] for line in lines] == [["16", "forward"], ["16", "fwd+bwd"]]
    assert all(float(number) > 0 for line in lines for number in line[2:])


def test_the_first_use_compiles_and_a_later_one_loads(capsys):
    first_use.main(["--rounds", "1"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [line[0] for line in lines] == ["first", "later"]
    (_, compiled, _), (_, loaded, again) = ([float(number) for number in line[2:]] for line in lines)
    assert compiled > 2 * loaded > 2 * again > 0
