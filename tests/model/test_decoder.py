"""The decoder: what each position may see, writing step by step against whole sequences, and tasks that it learns."""

from itertools import accumulate, product

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from graphattn.errors import BackendError, GraphError, SettingError, ShapeError
from graphattn.featurize.positions import LearnedPositions, positions_in_sets
from graphattn.model import decoder as decoder_file
from graphattn.model.decoder import SequenceDecoder, next_tokens
from graphattn.model.decoder_block import DecoderBlock

START, END, TOKENS = 0, 1, 6
SEQUENCES = [[2, 3, 4], [], [5, 5, 2, 3, 3], [4]]
SIZES = [3, 4, 0, 1]  # of the sets; the third is empty


def small_decoder(num_tokens: int = TOKENS, *, dtype: torch.dtype = torch.float32, **more: object) -> SequenceDecoder:
    torch.manual_seed(0)
    settings = {"channels": 16, "layers": 2, "heads": 4, "longest": 8, "memory_channels": 5} | more
    return SequenceDecoder(num_tokens, **settings).to(dtype).eval()


def sets_of(sizes: list[int], width: int = 5, seed: int = 0, dtype: torch.dtype = torch.float32):
    """Random vectors, and the boundaries of sets of these sizes."""
    memory = torch.randn(sum(sizes), width, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return memory, bounds(sizes)


def bounds(sizes: list[int]) -> torch.Tensor:
    return torch.tensor([0, *accumulate(sizes)])


def scores_of(decoder, sequences, memory, memory_ptr):
    inputs, _, ptr = next_tokens(sequences, START, END)
    return decoder(inputs, ptr, memory, memory_ptr)


@pytest.mark.parametrize("normalizer", ["softmax", "relu"])
def test_a_sequence_and_its_set_have_the_scores_that_they_have_alone(normalizer):
    decoder, (memory, memory_ptr) = small_decoder(cross_normalizer=normalizer), sets_of(SIZES)
    alone = [
        scores_of(decoder, [tokens], part, bounds([len(part)]))
        for tokens, part in zip(SEQUENCES, memory.split(SIZES), strict=True)
    ]
    assert [len(rows) for rows in alone] == [4, 1, 6, 2]
    together = scores_of(decoder, SEQUENCES, memory, memory_ptr)
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-5, atol=1e-5)
    assert together.isfinite().all()


def test_a_later_token_changes_nothing_before_it():
    decoder, (memory, memory_ptr) = small_decoder(), sets_of([3])
    before = scores_of(decoder, [[2, 3, 4, 5, 2]], memory, memory_ptr)
    after = scores_of(decoder, [[2, 3, 5, 5, 2]], memory, memory_ptr)  # row 3 is the first that reads the third token
    torch.testing.assert_close(after[:3], before[:3], rtol=0, atol=0)
    assert ((after[3:] - before[3:]).abs().amax(1) > 1e-4).all()


def test_gradients_reach_the_tokens_so_far_and_no_set_but_ones_own():
    decoder, (memory, memory_ptr) = small_decoder(), sets_of([2, 3])
    memory.requires_grad_()
    inputs, _, ptr = next_tokens([[2, 3, 4], [5, 5]], START, END)
    embedded = []
    handle = decoder.token.register_forward_hook(lambda *call: embedded.append(call[-1]) or call[-1].retain_grad())
    scores = decoder(inputs, ptr, memory, memory_ptr)
    handle.remove()
    scores[5].sum().backward()  # the second sequence's second position
    reached = embedded[0].grad.abs().sum(1) > 0
    assert reached.tolist() == [False] * 4 + [True, True, False]
    assert (memory.grad.abs().sum(1) > 0).tolist() == [False] * 2 + [True] * 3


@pytest.mark.parametrize("normalizer", ["softmax", "relu"])
def test_the_order_of_a_set_changes_nothing_and_its_vectors_do(normalizer):
    decoder, (memory, memory_ptr) = small_decoder(cross_normalizer=normalizer), sets_of(SIZES)
    want = scores_of(decoder, SEQUENCES, memory, memory_ptr)
    shuffled = memory[[2, 0, 1, 6, 4, 3, 5, 7]]
    torch.testing.assert_close(scores_of(decoder, SEQUENCES, shuffled, memory_ptr), want, rtol=1e-5, atol=1e-5)
    changed = memory.clone()
    changed[4] += 1  # of the second set, whose only position is row 4
    differs = (scores_of(decoder, SEQUENCES, changed, memory_ptr) - want).abs().amax(1) > 1e-4
    assert differs.tolist() == [row == 4 for row in range(13)]


def test_relu_sums_over_a_set_and_softmax_takes_the_mean():
    twice = torch.tensor([0, 1, 2, 0, 1, 2])
    memory, memory_ptr = sets_of([3])
    softmax, relu = (small_decoder(cross_normalizer=normalizer) for normalizer in ("softmax", "relu"))
    once = scores_of(softmax, [[2, 3]], memory, memory_ptr)
    torch.testing.assert_close(scores_of(softmax, [[2, 3]], memory[twice], 2 * memory_ptr), once, rtol=1e-5, atol=1e-5)
    more = scores_of(relu, [[2, 3]], memory[twice], 2 * memory_ptr) - scores_of(relu, [[2, 3]], memory, memory_ptr)
    assert (more.abs().amax(1) > 1e-3).all()
    block = relu.blocks[0]
    assert isinstance(block, DecoderBlock)
    attention, x = block.cross_attention, torch.randn(1, 16, generator=torch.Generator().manual_seed(1))
    edges = torch.stack([torch.arange(6), torch.zeros(6, dtype=torch.long)])
    single = attention((memory, x), edges[:, :3])
    torch.testing.assert_close(attention((memory[twice], x), edges), 2 * single, rtol=1e-5, atol=1e-5)


def test_weights_of_the_cross_attention_are_those_of_the_forward_pass():
    decoder, (memory, memory_ptr) = small_decoder(), sets_of(SIZES)
    inputs, _, ptr = next_tokens(SEQUENCES, START, END)
    seen, handles = [], []
    for block in decoder.blocks:
        attention = block.cross_attention
        handles.append(
            attention.register_forward_hook(lambda layer, given, out: seen.append(layer.attention_weights(*given)))
        )
    decoder(inputs, ptr, memory, memory_ptr)
    for handle in handles:
        handle.remove()
    weights = decoder.cross_attention_weights(inputs, ptr, memory, memory_ptr)
    for block, (got, want) in enumerate(
        zip(
            small_decoder(dropout=0.5).train().cross_attention_weights(inputs, ptr, memory, memory_ptr),
            weights,
            strict=True,
        )
    ):
        torch.testing.assert_close(got.edges, want.edges, rtol=0, atol=0, msg=f"block {block}: no dropout acts")
    assert len(weights) == len(seen) == 2
    pairs = [(len(tokens) + 1) * size for tokens, size in zip(SEQUENCES, SIZES, strict=True)]
    for got, want in zip(weights, seen, strict=True):
        assert got.edges.shape == (sum(pairs), 4)
        torch.testing.assert_close(got.edges, want.edges, rtol=0, atol=0)
        first = got.edges[: pairs[0]].view(len(SEQUENCES[0]) + 1, SIZES[0], 4)
        torch.testing.assert_close(first.sum(1), torch.ones(len(first), 4))
    with pytest.raises(ShapeError, match="memory must have shape"):
        decoder.cross_attention_weights(inputs, ptr, memory[:, :3], memory_ptr)


@pytest.mark.parametrize("backend", ["sparse", "fused_cpu", "dense", "definition"])
def test_every_backend_gives_the_same_scores_and_writes_the_same(backend):
    memory, memory_ptr = sets_of(SIZES)
    want, got = small_decoder(), small_decoder(backend=backend)
    torch.testing.assert_close(
        scores_of(got, SEQUENCES, memory, memory_ptr), scores_of(want, SEQUENCES, memory, memory_ptr)
    )
    settings = {"start": START, "end": END, "longest": 4, "beams": 3}
    for ours, theirs in zip(
        got.generate(memory, memory_ptr, **settings), want.generate(memory, memory_ptr, **settings), strict=True
    ):
        assert (ours.tokens, ours.finished) == (theirs.tokens, theirs.finished)
        assert ours.log_probability == pytest.approx(theirs.log_probability, abs=1e-5)


def test_a_backend_that_is_not_there_is_refused():
    with pytest.raises(BackendError, match="there is no backend 'fast'"):
        scores_of(small_decoder(backend="fast"), SEQUENCES, *sets_of(SIZES))


@pytest.mark.parametrize("normalizer", ["softmax", "relu"])
def test_writing_step_by_step_gives_the_scores_of_whole_sequences(normalizer):
    """Sequences branch, are left, change places and run out, as in a beam."""
    decoder, (memory, memory_ptr) = small_decoder(cross_normalizer=normalizer), sets_of(SIZES)
    writer = decoder_file._Writer(decoder, memory, memory_ptr)
    steps = [  # sets, then for each row the row of the step before that it continues, and its token
        ([0, 1, 2, 3], [0, 1, 2, 3], [START] * 4),
        ([0, 0, 1, 2, 2, 2], [0, 0, 1, 2, 2, 2], [2, 3, 5, 2, 3, 4]),
        ([0, 0, 2, 2], [1, 1, 5, 3], [4, 2, 4, 5]),
        ([2], [2], [3]),
    ]
    written = [()] * 4
    with torch.no_grad():
        for sets, parents, tokens in steps:
            written = [(*written[parent], token) for parent, token in zip(parents, tokens, strict=True)]
            got = writer(torch.tensor(tokens), torch.tensor(parents), torch.tensor(sets))
            parts = [memory.split(SIZES)[which] for which in sets]
            ptr = bounds([len(row) for row in written])
            whole = decoder(
                torch.tensor(sum(written, ())), ptr, torch.cat(parts), bounds([len(part) for part in parts])
            )
            torch.testing.assert_close(got, whole[ptr[1:] - 1], rtol=1e-5, atol=1e-5)
    assert written == [(START, 4, 4, 3)]


def greedy_by_whole_sequences(decoder, memory, longest):
    """Greedy search for one set that computes everything anew for every token."""
    tokens, total = [], 0.0
    while True:
        following = scores_of(decoder, [tokens], memory, bounds([len(memory)]))[-1].log_softmax(-1)
        token = int(following.argmax())
        if token == END:
            return tuple(tokens), total + float(following[token]), True
        if len(tokens) == longest:
            return tuple(tokens), total, False
        tokens.append(token)
        total += float(following[token])


@torch.no_grad()
def test_greedy_writing_equals_the_search_that_computes_everything_anew():
    sizes = [3, 0, 5, 1, 2, 4]
    decoder, (memory, memory_ptr) = small_decoder(), sets_of(sizes)
    decoder.head.bias[END] += 0.3
    results = decoder.generate(3 * memory, memory_ptr, start=START, end=END)
    for part, result in zip((3 * memory).split(sizes), results, strict=True):
        tokens, total, finished = greedy_by_whole_sequences(decoder, part, longest=8)
        assert (result.tokens, result.finished) == (tokens, finished)
        assert result.log_probability == pytest.approx(total, abs=1e-4)
    assert {result.finished for result in results} == {True, False}
    assert len({len(result.tokens) for result in results}) > 2


@torch.no_grad()
def test_enough_beams_find_the_most_probable_of_all_sequences():
    sizes, longest = [3, 0, 2], 3
    decoder, (memory, memory_ptr) = (
        small_decoder(num_tokens=4, dtype=torch.float64),
        sets_of(sizes, dtype=torch.float64),
    )
    every = [list(tokens) for length in range(longest + 1) for tokens in product([0, 2, 3], repeat=length)]
    inputs, targets, ptr = next_tokens(every, START, END)
    results = decoder.generate(memory, memory_ptr, start=START, end=END, longest=longest, beams=4 * 3**longest)
    greedy = decoder.generate(memory, memory_ptr, start=START, end=END, longest=longest)
    for part, result, first in zip(memory.split(sizes), results, greedy, strict=True):
        repeated, repeated_ptr = part.repeat(len(every), 1), torch.arange(len(every) + 1) * len(part)
        chosen = decoder(inputs, ptr, repeated, repeated_ptr).log_softmax(-1).gather(1, targets[:, None])[:, 0]
        totals = torch.stack([rows.sum() for rows in chosen.split(ptr.diff().tolist())])
        assert result.finished
        assert result.tokens == tuple(every[int(totals.argmax())])
        assert result.log_probability == pytest.approx(float(totals.max()), abs=1e-10)
        assert not first.finished or first.log_probability <= result.log_probability + 1e-10


@pytest.mark.parametrize("beams", [1, 4])
def test_a_set_writes_in_company_what_it_writes_alone(beams):
    sizes = [3, 0, 5, 1, 2, 4]
    decoder, (memory, memory_ptr) = small_decoder(), sets_of(sizes)
    together = decoder.generate(memory, memory_ptr, start=START, end=END, beams=beams)
    for part, result in zip(memory.split(sizes), together, strict=True):
        (alone,) = decoder.generate(part, bounds([len(part)]), start=START, end=END, beams=beams)
        assert (alone.tokens, alone.finished) == (result.tokens, result.finished)
        assert alone.log_probability == pytest.approx(result.log_probability, abs=1e-5)


def test_writing_in_training_mode_has_no_dropout_and_leaves_every_mode_as_it_was():
    decoder, (memory, memory_ptr) = small_decoder(dropout=0.5), sets_of(SIZES)
    settings = {"start": START, "end": END, "beams": 2}
    want = decoder.generate(memory, memory_ptr, **settings)
    assert not any(part.training for part in decoder.modules())
    decoder.train()
    decoder.blocks[0].eval()  # a part that is kept as it is while the rest learns
    modes = [part.training for part in decoder.modules()]
    memory.requires_grad_()
    assert decoder.generate(memory, memory_ptr, **settings) == want
    assert [part.training for part in decoder.modules()] == modes
    with pytest.raises(SettingError, match="beams"):
        decoder.generate(memory, memory_ptr, start=START, end=END, beams=0)
    assert [part.training for part in decoder.modules()] == modes
    first, second = (scores_of(decoder, SEQUENCES, memory, memory_ptr) for _ in range(2))
    assert not torch.equal(first, second)  # dropout does act in training


@pytest.mark.parametrize("normalizer", ["softmax", "relu"])
def test_gradients_are_right_and_reach_every_parameter(normalizer):
    decoder = small_decoder(cross_normalizer=normalizer, dtype=torch.float64, channels=4, heads=2, layers=1)
    memory, memory_ptr = sets_of([2, 0, 1], dtype=torch.float64)
    inputs, targets, ptr = next_tokens([[2, 3], [4], []], START, END)
    weights = torch.stack([torch.randn(TOKENS, dtype=torch.float64) for _ in inputs])
    assert torch.autograd.gradcheck(
        lambda memory: (decoder(inputs, ptr, memory, memory_ptr) * weights).sum(), memory.requires_grad_()
    )
    cross_entropy(decoder(inputs, ptr, memory, memory_ptr), targets).backward()
    for name, parameter in decoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        shifts_all_scores = normalizer == "softmax" or "self_attention" in name
        if not (name.endswith("attention.key.bias") and shifts_all_scores):  # softmax cannot see it
            assert parameter.grad.abs().sum() > 0, name


def test_no_sets_at_all_and_empty_sequences():
    decoder, (memory, memory_ptr) = small_decoder(), sets_of([])
    inputs, targets, ptr = next_tokens([], START, END)
    assert decoder(inputs, ptr, memory, memory_ptr).shape == (0, TOKENS)
    assert targets.shape == (0,)
    assert decoder.generate(memory, memory_ptr, start=START, end=END) == []
    memory, memory_ptr = sets_of([3, 2])
    no_start = decoder(torch.tensor([START]), torch.tensor([0, 0, 1]), memory, memory_ptr)
    torch.testing.assert_close(no_start, scores_of(decoder, [[]], memory[3:], bounds([2])))


def test_next_tokens_are_packed_and_shifted_by_one():
    inputs, targets, ptr = next_tokens([torch.tensor([2, 3]), [], (4,)], START, END)
    assert inputs.tolist() == [START, 2, 3, START, START, 4]
    assert targets.tolist() == [2, 3, END, END, 4, END]
    assert ptr.tolist() == [0, 3, 4, 6]
    assert {each.dtype for each in (inputs, targets, ptr)} == {torch.int64}
    for token in (1.7, -1, "a"):
        with pytest.raises(SettingError, match="a token must be"):
            next_tokens([[token]], START, END)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_tokens_may_be_integers_of_any_size(dtype):
    decoder, (memory, memory_ptr) = small_decoder(), sets_of(SIZES)
    inputs, _, ptr = next_tokens(SEQUENCES, START, END)
    want = decoder(inputs, ptr, memory, memory_ptr)
    torch.testing.assert_close(decoder(inputs.to(dtype), ptr, memory, memory_ptr), want, rtol=0, atol=0)


def learn(modules, loss_of, steps, learning_rate):
    """Adam with a learning rate that rises and falls."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    optimizer = torch.optim.Adam(parameters, learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
        schedule.step()


def test_it_learns_to_write_how_many_vectors_a_set_has():
    """0 to 30 in decimal digits. Softmax could not: the mean of equal vectors is the same for every number of them."""
    sizes = list(range(31))
    numbers = [[int(digit) for digit in str(size)] for size in sizes]
    inputs, targets, ptr = next_tokens(numbers, start=10, end=11)
    memory, memory_ptr = sets_of([1], width=8)[0].expand(sum(sizes), 8).contiguous(), bounds(sizes)
    settings = {"channels": 48, "heads": 4, "longest": 3, "memory_channels": 8}
    decoder = small_decoder(12, cross_normalizer="relu", **settings)
    learn([decoder], lambda: cross_entropy(decoder(inputs, ptr, memory, memory_ptr), targets), 500, 5e-3)
    results = decoder.generate(memory, memory_ptr, start=10, end=11)
    assert [list(result.tokens) for result in results] == numbers
    mean = small_decoder(12, **settings).generate(memory, memory_ptr, start=10, end=11)
    assert len({result.tokens for result in mean[1:]}) == 1


def test_it_learns_to_write_a_set_in_reverse():
    """Positions are in the vectors of the set, since the set has no order; unseen sequences, lengths 0 to 5."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)

    def drawn(count):
        lengths = torch.randint(0, 6, (count,), generator=generator).tolist()
        return [torch.randint(2, 8, (length,), generator=generator) for length in lengths]

    decoder = SequenceDecoder(8, channels=32, layers=2, heads=4, longest=5)
    words, places = nn.Embedding(8, 32), LearnedPositions(5, 32)

    def encoded(sequences):
        memory_ptr = bounds([len(tokens) for tokens in sequences])
        return words(torch.cat(sequences)) + places(positions_in_sets(memory_ptr)), memory_ptr

    def loss():
        sequences = drawn(64)
        inputs, targets, ptr = next_tokens([tokens.flip(0) for tokens in sequences], START, END)
        return cross_entropy(decoder(inputs, ptr, *encoded(sequences)), targets)

    learn([decoder, words, places], loss, 400, 5e-3)
    unseen = drawn(200)
    results = decoder.generate(*encoded(unseen), start=START, end=END)
    assert [result.tokens for result in results] == [tuple(tokens.flip(0).tolist()) for tokens in unseen]
    assert all(result.finished for result in results)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"tokens": torch.tensor([0, 6])}, GraphError, r"tokens\[1\] is 6, but this decoder has the tokens 0 to 5"),
        ({"tokens": torch.tensor([0, -1])}, GraphError, r"tokens\[1\] is -1, but this decoder has the tokens 0 to 5"),
        ({"tokens": torch.zeros(2)}, ShapeError, r"tokens must hold integers of shape \(M,\).*got float32"),
        (
            {"tokens": torch.zeros(1, 2, dtype=torch.long)},
            ShapeError,
            r"all sequences packed; got int64 of shape \(1, 2",
        ),
        ({"ptr": torch.tensor([0, 3])}, GraphError, r"ptr must rise from 0 to the 2 .* got \[0, 3\]"),
        ({"memory_ptr": torch.tensor([0, 2])}, GraphError, r"memory_ptr must rise from 0 to the 3 .* got \[0, 2\]"),
        ({"memory_ptr": torch.tensor([0, 1, 3])}, GraphError, "ptr bounds 1 sequences but memory_ptr 2 sets; give one"),
        ({"memory": torch.zeros(3, 4)}, ShapeError, r"memory must have shape \(N, 5\); got \(3, 4\)"),
        ({"memory": torch.zeros(5)}, ShapeError, r"memory must have shape \(N, 5\); got \(5,\)"),
        ({"memory": torch.zeros(3, 5).double()}, ShapeError, "memory is torch.float64, but the decoder's weights are"),
        (
            {"tokens": torch.zeros(12, dtype=torch.long), "ptr": torch.tensor([0, 12])},
            ShapeError,
            "sequence 0 has 12 positions, its start included, but this decoder has 9; make it with longest=11 or more",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_words(change, error, words):
    fitting = {
        "tokens": torch.tensor([0, 2]),
        "ptr": torch.tensor([0, 2]),
        "memory": torch.zeros(3, 5),
        "memory_ptr": torch.tensor([0, 3]),
    }
    decoder = small_decoder()
    assert decoder(**fitting).shape == (2, TOKENS)
    with pytest.raises(error, match=words):
        decoder(**(fitting | change))
    if "memory" in change or len(change.get("memory_ptr", [])) == 2:
        given = fitting | change
        with pytest.raises(error, match=words):
            decoder.generate(given["memory"], given["memory_ptr"], start=START, end=END)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"start": 6}, "start must be between 0 and 5, got 6"),
        ({"end": -1}, "end must be at least 0, got -1"),
        ({"longest": 9}, "longest must be between 0 and 8, got 9"),
        ({"beams": 0}, "beams must be at least 1, got 0"),
        ({"length_penalty": -1}, r"length_penalty must be in \[0, 10\), got -1"),
    ],
)
def test_settings_of_writing_out_of_range_are_refused(settings, words):
    with pytest.raises(SettingError, match=words):
        small_decoder().generate(*sets_of(SIZES), **({"start": START, "end": END} | settings))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_tokens": 0}, "num_tokens must be at least 1, got 0"),
        ({"longest": -1}, "longest must be at least 0, got -1"),
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"heads": 2.0}, "heads must be a whole number, got 2.0"),
        ({"channels": 8.0}, "channels must be a whole number, got 8.0"),
        ({"channels": -8}, "channels must be at least 1, got -8"),
        ({"memory_channels": 0}, "memory_channels must be at least 1, got 0"),
        ({"heads": 3}, r"out_channels \(16\) must be a multiple of heads \(3\)"),
        ({"cross_normalizer": "sum"}, "normalizer must be 'softmax' or 'relu', got 'sum'"),
    ],
)
def test_settings_of_a_decoder_out_of_range_are_refused(settings, words):
    with pytest.raises(SettingError, match=words):
        small_decoder(**settings)
