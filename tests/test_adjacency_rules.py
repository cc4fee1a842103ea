"""Adjacencies made by a rule, or out of others: each beside the rule spelled out pair by pair."""

import hypothesis.strategies as st
import networkx as nx
import pytest
import torch
from hypothesis import given, settings

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import masked_attention
from graphattn.csr import ADDED_SELF_LOOP
from graphattn.errors import GraphError, SettingError, ShapeError

SIZES = st.lists(st.integers(0, 6), min_size=1, max_size=4)


def pairs(adjacency: Adjacency) -> list[tuple[int, int]]:
    """(receiver, sender) of every entry, in the order of the entries."""
    return list(zip(adjacency.receiver.tolist(), adjacency.sender.tolist(), strict=True))


def boundaries(sizes: list[int]) -> torch.Tensor:
    return torch.tensor([0, *sizes]).cumsum(0)


def in_sets(sizes: list[int], rule) -> list[tuple[int, int]]:
    """All pairs of positions of one set that ``rule`` allows."""
    ptr = boundaries(sizes).tolist()
    return [
        (first + receiver, first + sender)
        for first, size in zip(ptr, sizes, strict=False)
        for receiver in range(size)
        for sender in range(size)
        if rule(receiver, sender)
    ]


def of_equal_totals() -> Adjacency:
    """Three senders and three receivers, but of other graphs: the two are not one set of nodes."""
    return Adjacency.cross(ptr=torch.tensor([0, 2, 3]), sender_ptr=torch.tensor([0, 1, 3]))


def assert_sound(adjacency: Adjacency) -> None:
    """What the record promises of itself: edges numbered once each, boundaries, dtypes."""
    own = adjacency.edge_id[adjacency.edge_id != ADDED_SELF_LOOP]
    assert sorted(own.tolist()) == list(range(adjacency.num_edges))
    again = Adjacency.from_edge_index(
        adjacency.edge_index(),
        num_senders=adjacency.num_senders,
        num_receivers=adjacency.num_receivers,
        ptr=adjacency.ptr,
        sender_ptr=adjacency.sender_ptr,
    )
    assert sorted(pairs(again)) == sorted(pairs(adjacency))
    assert adjacency.rowptr.dtype == adjacency.col.dtype == torch.int32
    assert adjacency.edge_id.dtype == adjacency.ptr.dtype == adjacency.sender_ptr.dtype == torch.int64


@given(SIZES)
@settings(max_examples=30, deadline=None)
def test_what_sees_itself_and_those_before_it_is_causal(sizes):
    ptr = boundaries(sizes)
    written = Adjacency.causal(ptr=ptr)
    backwards = torch.arange(written.num_edges).flip(0)
    shuffled = Adjacency.from_edge_index(written.edge_index()[:, backwards], len(written.rowptr) - 1, ptr=ptr)
    assert written.is_causal
    assert shuffled.is_causal
    for other in (Adjacency.complete(ptr=ptr), Adjacency.window(ptr=ptr, radius=2), written.transpose):
        assert other.is_causal == (max(sizes) <= 1)
    if max(sizes) > 1:
        twice = written.edge_index().clone()
        twice[0, twice[0] != twice[1]] = twice[1, twice[0] != twice[1]]  # as many entries a row, all of them the loop
        assert not Adjacency.from_edge_index(twice, len(written.rowptr) - 1, ptr=ptr).is_causal
    assert not Adjacency.cross(3, 2).is_causal


def test_as_many_pairs_as_a_written_sequence_has_are_not_enough():
    later = Adjacency.from_edge_index(torch.tensor([[1, 0, 1], [0, 1, 1]]), 2)  # 0 sees 1, which comes after it
    assert not later.is_causal
    other_sets = Adjacency.from_edge_index(
        torch.tensor([[0, 0, 1], [0, 1, 1]]),
        num_senders=2,
        num_receivers=2,
        ptr=torch.tensor([0, 2, 2]),
        sender_ptr=torch.tensor([0, 2, 2]),
    )
    assert other_sets.is_causal
    query, key, value = torch.randn(3, 2, 1, 4, generator=torch.Generator().manual_seed(0))
    for adjacency in (later, other_sets):
        want = masked_attention(query, key, value, adjacency, backend="definition")
        torch.testing.assert_close(masked_attention(query, key, value, adjacency, backend="dense"), want)


def test_a_window_may_reach_as_far_as_it_likes():
    assert Adjacency.window(4, radius=2**63 - 1).is_complete
    assert Adjacency.window(4, radius=10**30).is_complete


def test_hops_end_when_nothing_more_is_reached():
    ring = torch.arange(30)
    around = Adjacency.from_edge_index(torch.stack([ring, (ring + 1) % 30]), 30)
    assert pairs(around.k_hop(10**9)) == pairs(Adjacency.complete(30))


@given(SIZES, st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_window_reaches_so_far_and_stays_in_its_sequence(sizes, radius):
    window = Adjacency.window(ptr=boundaries(sizes), radius=radius)
    assert pairs(window) == in_sets(sizes, lambda receiver, sender: abs(receiver - sender) <= radius)
    assert window.edge_id.tolist() == list(range(window.num_edges))
    assert_sound(window)


@given(SIZES)
@settings(max_examples=30, deadline=None)
def test_causal_sees_what_came_before_and_itself(sizes):
    causal = Adjacency.causal(ptr=boundaries(sizes))
    assert pairs(causal) == in_sets(sizes, lambda receiver, sender: sender <= receiver)
    assert_sound(causal)


def test_a_window_over_everything_is_complete():
    assert pairs(Adjacency.window(7, radius=6)) == pairs(Adjacency.complete(7))
    assert Adjacency.window(7, radius=6).is_complete


def test_a_window_grows_linearly():
    short, long = (Adjacency.window(frames, radius=15).num_entries for frames in (1_000, 60_000))
    assert short == 31 * 1_000 - 15 * 16
    assert long == 31 * 60_000 - 15 * 16


@given(st.integers(0, 6), st.integers(0, 6), st.sampled_from([1, 3, 5, 9]), st.sampled_from([1, 3, 7]))
@settings(max_examples=60, deadline=None)
def test_grid_is_the_patch_around_a_pixel(height, width, rows, columns):
    grid = Adjacency.grid(height, width, size=(rows, columns))

    def near(receiver: int, sender: int) -> bool:
        down, right = (abs(r - s) for r, s in zip(divmod(receiver, width), divmod(sender, width), strict=True))
        return down <= rows // 2 and right <= columns // 2

    assert pairs(grid) == in_sets([height * width], near)
    assert_sound(grid)


def test_one_number_is_a_square():
    assert pairs(Adjacency.grid(4, 5, size=3)) == pairs(Adjacency.grid(4, 5, size=(3, 3)))
    assert Adjacency.grid(28, 28, size=5).num_entries == (5 * 28 - 6) ** 2  # two rims of 1 + 2 pixels, on each side


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_cross_is_every_pair_of_two_sets(sizes):
    ptr, sender_ptr = (boundaries(list(counts)) for counts in zip(*sizes, strict=True))
    cross = Adjacency.cross(ptr=ptr, sender_ptr=sender_ptr)
    assert pairs(cross) == [
        (receiver, sender)
        for graph in range(len(sizes))
        for receiver in range(int(ptr[graph]), int(ptr[graph + 1]))
        for sender in range(int(sender_ptr[graph]), int(sender_ptr[graph + 1]))
    ]
    assert_sound(cross)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_batch_holds_each_as_it_was(data):
    makers = [
        lambda: Adjacency.grid(2, 3),
        lambda: Adjacency.from_edge_index(torch.tensor([[2, 0, 0], [1, 1, 2]]), 4).with_self_loops(),
        lambda: Adjacency.complete(ptr=torch.tensor([0, 2, 2, 3])),
        lambda: Adjacency.cross(2, 3),
        lambda: Adjacency.complete(0),
    ]
    parts = [make() for make in data.draw(st.lists(st.sampled_from(makers), min_size=1, max_size=4))]
    batch = Adjacency.batch(parts)
    wanted, receivers, senders, edges = [], 0, 0, 0
    for part in parts:
        for (receiver, sender), edge in zip(pairs(part), part.edge_id.tolist(), strict=True):
            wanted.append((receivers + receiver, senders + sender, edge if edge < 0 else edges + edge))
        receivers, senders, edges = (
            receivers + part.num_receivers,
            senders + part.num_senders,
            edges + part.num_edges,
        )
    assert [(*pair, edge) for pair, edge in zip(pairs(batch), batch.edge_id.tolist(), strict=True)] == wanted
    assert batch.num_graphs == sum(part.num_graphs for part in parts)
    assert batch.ptr.diff().tolist() == [size for part in parts for size in part.ptr.diff().tolist()]
    assert_sound(batch)


EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


def of_edges(edges: list[tuple[int, int]]) -> Adjacency:
    return Adjacency.from_edge_index(torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T, 6)


@given(EDGES, EDGES, st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_union_keeps_the_first_and_adds_what_only_the_second_has(edges, others, looped, others_looped):
    first, second = of_edges(edges), of_edges(others)
    first = first.with_self_loops() if looped else first
    union = first.union(second.with_self_loops() if others_looped else second)
    new = [pair for pair in others if pair not in {(sender, receiver) for receiver, sender in pairs(first)}]
    assert union.num_edges == len(edges) + len(new)
    edge_index = union.edge_index().T.tolist()[: union.num_edges]
    assert edge_index == [list(pair) for pair in [*edges, *new]]
    assert union.num_entries - union.num_edges == first.num_entries - first.num_edges
    assert_sound(union)


@given(EDGES, st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_k_hop_against_networkx(edges, hops):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(6))
    graph.add_edges_from(edges)
    near = nx.single_source_shortest_path_length
    wanted = sorted((receiver, sender) for sender in graph for receiver in near(graph, sender, cutoff=hops))
    assert pairs(of_edges(edges).k_hop(hops)) == wanted
    assert_sound(of_edges(edges).k_hop(hops))


def test_k_hop_stays_in_its_graph():
    paths = Adjacency.batch([Adjacency.window(4, radius=1), Adjacency.window(2, radius=1)])
    assert pairs(paths.k_hop(9)) == pairs(Adjacency.complete(ptr=paths.ptr))
    assert torch.equal(paths.k_hop(9).ptr, paths.ptr)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Adjacency.window(3, radius=-1), SettingError, "radius must be at least 0.*got -1"),
        (lambda: Adjacency.window(radius=1), ShapeError, "give num_nodes for one graph, or ptr"),
        (lambda: Adjacency.causal(3, ptr=torch.tensor([0, 3])), ShapeError, "one of the two"),
        (lambda: Adjacency.causal(ptr=torch.tensor([1, 3])), GraphError, "ptr must rise from 0"),
        (lambda: Adjacency.grid(3, 3, size=2), SettingError, r"size must be odd.*got \(2, 2\)"),
        (lambda: Adjacency.grid(3, 3, size=(3, -1)), SettingError, "size must be at least 1, got -1"),
        (lambda: Adjacency.grid(3, 3, size=(3, 3, 3)), SettingError, r"size must be odd.*got \(3, 3, 3\)"),
        (lambda: Adjacency.grid(3, 3, size=3.0), SettingError, "size must be a whole number, got 3.0"),
        (lambda: Adjacency.grid(-3, 3), SettingError, "height must be at least 0, got -3"),
        (lambda: Adjacency.grid(2.5, 3), SettingError, "height must be a whole number, got 2.5"),
        (lambda: Adjacency.complete(2.7), SettingError, "num_nodes must be a whole number, got 2.7"),
        (lambda: Adjacency.window(3, radius=1.5), SettingError, "radius must be a whole number, got 1.5"),
        (lambda: Adjacency.window(3, radius=True), SettingError, "radius must be a whole number, got True"),
        (lambda: Adjacency.causal(ptr=torch.tensor([0.0, 1.5, 3.0])), ShapeError, r"ptr must hold integers.*float32"),
        (lambda: Adjacency.causal(ptr=torch.tensor([[0, 3]])), ShapeError, r"integers of shape \(graphs \+ 1,\)"),
        (lambda: Adjacency.causal(ptr=torch.tensor(3)), ShapeError, r"ptr must hold integers.* of shape \(\)"),
        (lambda: Adjacency.cross(3), ShapeError, "give num_senders for one graph, or sender_ptr"),
        (lambda: Adjacency.cross(-3, 1), SettingError, "num_receivers must be at least 0, got -3"),
        (
            lambda: Adjacency.cross(3, sender_ptr=torch.tensor([0, 1, 2])),
            GraphError,
            "ptr bounds 1 graphs but sender_ptr 2",
        ),
        (lambda: Adjacency.batch([]), GraphError, "at least one adjacency"),
        (lambda: Adjacency.complete(3).union(Adjacency.complete(4)), GraphError, "same senders, receivers and graphs"),
        (
            lambda: Adjacency.complete(3).union(Adjacency.complete(ptr=torch.tensor([0, 1, 3]))),
            GraphError,
            "same senders, receivers and graphs",
        ),
        (lambda: Adjacency.complete(3).k_hop(-1), SettingError, "hops must be at least 0"),
        (lambda: Adjacency.complete(3).k_hop(1.5), SettingError, "hops must be a whole number, got 1.5"),
        (lambda: Adjacency.cross(2, 3).k_hop(1), GraphError, "one set; here are 3 senders and 2 receivers"),
        (lambda: of_equal_totals().k_hop(1), GraphError, r"hops need .* one set; .* end at \[1, 3\] and \[2, 3\]"),
        (lambda: of_equal_totals().with_self_loops(), GraphError, r"self loops need .* end at \[1, 3\] and \[2, 3\]"),
    ],
)
def test_impossible_rules_are_refused_in_words(make, error, words):
    with pytest.raises(error, match=words):
        make()
