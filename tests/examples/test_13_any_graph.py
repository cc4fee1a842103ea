"""Graphs of all kinds through one layer, and the karate club: side of a member from a handful of known ones."""

import pytest
import torch
from example_modules import is_picture, load


@pytest.mark.parametrize("quick", [True, False])
def test_most_members_are_put_on_their_side(tmp_path, capsys, quick):
    assert load("13_any_graph").main(tmp_path, quick=quick) >= 0.9
    assert is_picture(tmp_path / "karate_club.png")
    printed = capsys.readouterr().out
    assert "node 'Bo' has no attribute 'age'" in printed
    assert "the ages are [30.0, 0.0]" in printed


def test_one_graph_in_many_forms_has_one_result():
    example = load("13_any_graph")
    graphs = example.forms()
    same, others = list(graphs.values())[:4], list(graphs.values())[4:]
    for graph in same[1:]:
        torch.testing.assert_close(example.attended(graph), example.attended(same[0]))
    for graph in others:
        assert not torch.allclose(example.attended(graph), example.attended(same[0]), atol=1e-3)
    assert same[0].nodes == ["Ann", "Bo", "Cy", "Di"]
    directed, multigraph = others
    assert directed.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert multigraph.edge_index.T.tolist() == [[0, 1], [0, 1], [1, 2], [3, 3]]
