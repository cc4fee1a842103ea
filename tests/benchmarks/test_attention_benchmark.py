"""The attention benchmark: it runs, refuses to time a wrong answer, and its graphs are what they are called."""

import json
from dataclasses import replace
from functools import partial

import attention
import pytest
import torch
from attention_cases import Case, Graph, complete, cora, molecules, power_law, window
from attention_contestants import LEVELS, SCORES, Contestant, Declined, Problem, WrongAnswer, largest_error
from attention_measure import Alone, interleaved, measured_alone, median_ratio
from attention_results import Result, growth_plot, growth_table, summary, table
from shared_data import shared_file

SMALL = power_law(40, 200)


def small_problem(score="dot", *, edges=True):
    return Problem(SMALL, 64, score, edges)


def test_the_quick_run_prints_a_table_and_writes_rows(tmp_path, capsys):
    attention.main(["--quick", "--rounds", "2", "--json", str(tmp_path / "rows.json")])
    printed = capsys.readouterr().out
    assert "small-window: 300 nodes, 2088 edges; width 64, dot, with edge features; Adjacency made in" in printed
    assert "no part: an edge term on the value has no place in scaled_dot_product_attention" in printed
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found["machine"].keys() >= {"processor", "threads", "torch", "torch-geometric", "numba"}
    assert (found["rounds"], found["missing"]) == (2, {})
    rows = {(row["level"], row["contestant"], row["edge_features"]): row for row in found["rows"]}
    assert len(rows) == len(found["rows"]) == 2 * (8 + 5)
    ours, pyg = rows["layer", "ours fused_cpu", True], rows["layer", "PyG TransformerConv", True]
    assert ours["rounds"] == 2
    assert 0 < ours["forward_spread_ms"][0] <= ours["forward_ms"] <= ours["forward_spread_ms"][1]
    assert ours["both_ms"] > 0
    assert ours["adjacency_ms"] > 0
    assert 0 < ours["error"] < 1e-5
    assert ours["faster_both"].keys() == {"PyG", "sparse", "dense", "own projection"}
    assert pyg["faster_both"]["PyG"] == rows["layer", "bare projection", True]["floors_both"] == 1
    assert rows["layer", "padded SDPA", False]["faster_forward"]["PyG"] > 0
    assert rows["core", "ours fused_cpu", True]["faster_both"]["sparse"] > 0
    assert rows["core", "padded SDPA", True]["both_ms"] is None


@pytest.mark.parametrize("edges", [True, False])
@pytest.mark.parametrize("score", SCORES)
def test_all_contestants_of_a_score_compute_the_same(score, edges):
    problem = small_problem(score, edges=edges)
    for _, _, contestant in problem.contestants():
        if isinstance(contestant, Contestant):
            error = problem.check(contestant)
            assert error is None or error < 1e-5


@pytest.mark.parametrize("level", LEVELS)
def test_a_wrong_output_is_refused(level):
    problem = small_problem()
    right = problem.contestant(level, "ours sparse")
    wrong = replace(right, run=lambda: right.run() * 1.001)
    with pytest.raises(
        WrongAnswer, match=rf"^ours sparse \({level}, dot, width 64, with edge features\): error 1\.0e-03"
    ):
        problem.check(wrong)


def test_a_wrong_gradient_is_refused_and_so_is_nan():
    problem = small_problem("additive")
    right = problem.contestant("layer", "ours sparse")

    def loses_half_the_gradient():
        out = right.run()
        return (out + out.detach()) / 2

    with pytest.raises(WrongAnswer, match=r"error 5\.0e-01"):
        problem.check(replace(right, run=loses_half_the_gradient))
    with pytest.raises(WrongAnswer, match="error nan"):
        problem.check(replace(right, run=lambda: right.run() * torch.nan))


def test_a_wrong_contestant_ends_the_run_without_a_table(monkeypatch, capsys):
    pyg = Problem._pyg
    monkeypatch.setattr(Problem, "_pyg", lambda self: replace(pyg(self), run=lambda: pyg(self).run() + 1e-3))
    with pytest.raises(SystemExit, match=r"^error: PyG TransformerConv \(layer, dot, .*; nothing is timed"):
        attention.main(["--quick"])
    assert "fwd+bwd" not in capsys.readouterr().out


def test_a_sample_of_receivers_tells_right_from_wrong(monkeypatch):
    monkeypatch.setattr("attention_contestants.MOST_CHECKED", SMALL.num_edges * 64 // 4)
    for score in SCORES:
        problem = small_problem(score)
        assert problem.sample.tolist()[:: len(problem.sample) - 1] == [0, 39]
        assert len(problem.sample) == 10
        for level in LEVELS:
            right = problem.contestant(level, "ours sparse")
            assert problem.check(right) < 1e-5
            with pytest.raises(WrongAnswer):
                problem.check(replace(right, run=lambda right=right: right.run() * 1.001))


@pytest.mark.parametrize("edges", [True, False])
@pytest.mark.parametrize("score", ["additive", "gat"])
def test_a_receiver_at_the_kink_of_the_score_is_not_asked(score, edges):
    everyone = list(range(SMALL.num_nodes))
    assert Problem(SMALL, 64, score, edges).sample.tolist() == everyone
    problem = Problem(SMALL, 64, score, edges)
    query, key, term = problem.call.query, problem.call.key, problem.call.edges.key
    receiver, sender = int(SMALL.adjacency.receiver[7]), int(SMALL.adjacency.sender[7])
    with torch.no_grad():
        query[receiver, 0, 0] = -key[sender, 0, 0]
        if edges:
            query[receiver, 0, 0] -= term.table[term.kind[SMALL.adjacency.edge_id[7]], 0, 0]
    assert problem.sample.tolist() == [node for node in everyone if node != receiver]


def test_a_tensor_that_is_zero_but_for_rounding_is_measured_by_the_largest():
    truth = {"output": torch.tensor([2.0]), "bias": torch.tensor([1e-17])}
    assert largest_error({"bias": torch.tensor([2e-6])}, truth) == pytest.approx(1e-6)


def test_rounds_are_shared_and_a_slow_contestant_does_fewer(monkeypatch):
    problem = small_problem()
    contestants = [problem.contestant("layer", name) for name in ("ours sparse", "bare projection")]
    assert [len(times.both) for times in interleaved(contestants, 5)] == [5, 5]
    monkeypatch.setattr("attention_measure.SLOW_SECONDS", 0.0)
    assert [len(times.forward) for times in interleaved(contestants, 5)] == [3, 3]
    assert median_ratio([2.0, 8.0, 6.0, 1.0], [1.0, 2.0, 2.0]) == 3


def test_padding_that_would_fill_the_memory_is_declined():
    problem = Problem(window(20_000, 1), 16, "dot", edges=False)
    with pytest.raises(Declined, match=r"padded to 4\.0e\+08 numbers"):
        problem.contestant("layer", "padded SDPA")


def test_graphs_are_what_they_are_called():
    graph = power_law(2000, 12_000)
    sender, receiver = graph.edge_index
    pairs = set(zip(sender.tolist(), receiver.tolist(), strict=True))
    assert len(pairs) == graph.num_edges
    assert 11_000 < graph.num_edges <= 12_000
    assert pairs == {(other, one) for one, other in pairs}
    assert not (sender == receiver).any()
    assert graph.largest_degree > 60  # of 6 on average
    assert torch.equal(power_law(2000, 12_000).edge_index, graph.edge_index)
    assert window(5, 1).edge_index.T.tolist()[:5] == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 1]]
    assert complete(7).num_edges == 49


def test_public_graphs_have_the_sizes_told():
    shared_file("graphs/planetoid/ind.cora.graph")
    assert (cora().num_nodes, cora().num_edges) == (2708, 10556)
    shared_file("molnet/Lipophilicity.csv")
    graph = molecules("molnet/Lipophilicity.csv", 3, 20, 30)
    assert all(20 <= size <= 30 for size in graph.ptr.diff().tolist())
    with pytest.raises(ValueError, match="has 0 molecules of 900 to 1000 atoms; 1 are wanted"):
        molecules("molnet/Lipophilicity.csv", 1, 900, 1000)


def test_a_case_without_its_data_is_left_out_and_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("GRAPHATTN_SHARED_DATA", str(tmp_path))
    attention.main(["--cases", "citations", "--widths", "16", "--json", str(tmp_path / "rows.json")])
    assert "left out: citations: public data file graphs/planetoid/ind.cora.graph is not at" in capsys.readouterr().out
    assert "citations" in json.loads((tmp_path / "rows.json").read_text())["missing"]


def test_a_picture_needs_something_to_draw(capsys):
    with pytest.raises(SystemExit):
        attention.main(["--plot", "growth.png"])
    assert "--plot draws what --growth measures" in capsys.readouterr().err


def row(**settings):
    common = {"case": "c", "nodes": 5, "width": 64, "score": "dot", "edge_features": True, "level": "layer"}
    return Result(**{**common, "edges": 8, "contestant": "ours auto", **settings})


def test_tables_and_the_picture_show_who_was_stopped(tmp_path):
    ours = row(forward_ms=1.0, both_ms=2.0, extra_mib=10.0, faster_both={"PyG": 4.0})
    stopped = row(contestant="PyG TransformerConv", passed_gib=20.0)
    assert "asked for more than 20.0 GiB" in table([ours, stopped])
    assert "4.00" in summary([ours, stopped])
    assert "0.10" in summary([ours, row(contestant="PyG TransformerConv", both_ms=8.0, extra_mib=100.0)])
    more = [row(edges=80, both_ms=20.0, extra_mib=100.0), row(edges=80, contestant="PyG TransformerConv", skipped="no")]
    shown = growth_table([ours, stopped, *more]).splitlines()
    assert shown[2].split() == ["8", "2.00", "10.0", "stopped", ">20480"]
    assert shown[3].split() == ["80", "20.00", "100.0", "no"]
    growth_plot([ours, *more], tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_process_of_its_own_weighs_checks_and_is_stopped_at_the_cap():
    order = partial(
        Alone, case="growth-1e5", width=64, score="dot", edges=False, level="layer", threads=1, rounds=2, check=True
    )
    ours = measured_alone(order(name="ours fused_cpu", cap_gib=2.0))
    pyg = measured_alone(order(name="PyG TransformerConv", cap_gib=2.0))
    assert len(ours["both"]) == 2
    assert ours["error"] < 1e-4
    assert 10 < ours["extra_mib"] < pyg["extra_mib"] < pyg["peak_mib"]
    assert measured_alone(order(name="PyG TransformerConv", cap_gib=0.05))["passed_gib"] == 0.1
    assert "padded to" in measured_alone(order(name="padded SDPA", cap_gib=1.0))["declined"]


def test_a_huge_case_is_measured_contestant_by_contestant(monkeypatch, capsys):
    huge = Case("h", "a small graph called huge", lambda: SMALL, huge=True)
    asked: list[Alone] = []

    def answer(order):
        asked.append(order)
        if order.name.startswith("PyG"):
            return {"passed_gib": 20.0}
        return {"extra_mib": 5.0, "peak_mib": 9.0, "forward": [1.0, 2.0], "both": [3.0, 4.0], "error": 1e-7}

    monkeypatch.setattr(attention, "CASES", (huge,))
    monkeypatch.setattr(attention, "measured_alone", answer)
    attention.main(["--huge", "--widths", "16", "--scores", "gat", "--edges", "with", "--rounds", "2"])
    asked_for = ["ours auto", "ours sparse", "PyG GATConv", "bare projection", "own projection"]
    assert [order.name for order in asked] == asked_for
    assert all(order.check and order.rounds == 2 for order in asked)
    shown = capsys.readouterr().out
    assert "each in a process of its own" in shown
    assert "PyG GATConv                asked for more than 20.0 GiB" in shown
    assert "3500" in shown


def test_an_isolated_node_gets_nothing_from_padded_attention():
    graph = Graph(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 2, 3]))
    problem = Problem(graph, 64, "dot", edges=False)
    assert problem.check(problem.contestant("layer", "padded SDPA")) < 1e-5
    assert not problem.contestant("core", "padded SDPA").forward()[2].any()
