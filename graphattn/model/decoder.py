"""A network that writes a sequence about a set of vectors: causal self-attention, and cross-attention to the set.

Sizes: ``G`` sets and as many sequences, ``N`` vectors of all sets, ``M`` positions of all sequences.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate

import torch
from torch import Tensor, nn

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import AttentionWeights
from graphattn.attention.normalizers import Normalizer
from graphattn.checks import whole_number
from graphattn.csr import boundaries, described, holds_integers
from graphattn.errors import GraphError, ShapeError
from graphattn.featurize.positions import LearnedPositions, positions_in_sets
from graphattn.model.decoder_block import DecoderBlock
from graphattn.model.generation import Decoded, beam_search
from graphattn.patterns import offsets


class SequenceDecoder(nn.Module):
    """Writes a sequence of a length of its own about each set of vectors: a sentence, a formula, a number in words.

    The sets are what an encoder made, such as :class:`GraphTransformer` without a readout. They and the sequences are
    packed: no padding, and every one has the result that it has alone. A set may be empty.

    Train on :func:`next_tokens` with ``torch.nn.functional.cross_entropy``; then :meth:`generate`.

    >>> decoder = SequenceDecoder(num_tokens=5, channels=16, layers=1, heads=2, longest=4)
    >>> inputs, targets, ptr = next_tokens([[2, 3], [4]], start=0, end=1)
    >>> memory, memory_ptr = torch.ones(7, 16), torch.tensor([0, 3, 7])            # a set of 3 vectors, and one of 4
    >>> decoder(inputs, ptr, memory, memory_ptr).shape
    torch.Size([5, 5])

    Args:
        num_tokens: size of the vocabulary, tokens that mark start and end included.
        channels: width of a position's vector.
        layers: number of blocks.
        heads: attention heads; divides ``channels``.
        longest: most tokens of a sequence, start and end not counted.
        memory_channels: width of the sets' vectors; ``channels`` where left out.
        cross_normalizer: ``"softmax"`` or, for what has to be counted, ``"relu"``; see :class:`DecoderBlock`.
        dropout: on attention weights and on residual branches.
        backend: see :func:`graphattn.masked_attention`.

    Raises:
        SettingError: a size is below 1, or widths and heads do not fit.
    """

    def __init__(
        self,
        num_tokens: int,
        *,
        channels: int = 128,
        layers: int = 2,
        heads: int = 8,
        longest: int = 64,
        memory_channels: int | None = None,
        cross_normalizer: Normalizer = "softmax",
        dropout: float = 0.0,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.num_tokens = whole_number("num_tokens", num_tokens, at_least=1)
        self.longest = whole_number("longest", longest, at_least=0)
        channels, heads = whole_number("channels", channels, at_least=1), whole_number("heads", heads, at_least=1)
        memory_channels = channels if memory_channels is None else memory_channels
        self.memory_channels = whole_number("memory_channels", memory_channels, at_least=1)
        self.token = nn.Embedding(num_tokens, channels)
        self.position = LearnedPositions(longest + 1, channels)
        self.blocks = nn.ModuleList(
            DecoderBlock(
                channels,
                heads,
                memory_channels=memory_channels,
                cross_normalizer=cross_normalizer,
                dropout=dropout,
                backend=backend,
            )
            for _ in range(whole_number("layers", layers, at_least=1))
        )
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, num_tokens)

    def forward(self, tokens: Tensor, ptr: Tensor, memory: Tensor, memory_ptr: Tensor) -> Tensor:
        """Scores of the token that follows each position, which sees those up to itself and its own set.

        Args:
            tokens: (M,) integers, each sequence with its start token first; ``inputs`` of :func:`next_tokens`.
            ptr: (G + 1,) boundaries of the sequences.
            memory: (N, memory_channels) vectors of the sets.
            memory_ptr: (G + 1,) boundaries of the sets.

        Returns:
            (M, num_tokens), before softmax.

        Raises:
            GraphError: a token is out of range, or boundaries do not fit.
            ShapeError: shapes or dtypes do not fit, or a sequence is longer than ``longest``.
        """
        x, causal, cross = self._begin(tokens, ptr, memory, memory_ptr)
        for block in self.blocks:
            x = block(x, memory, causal, cross)
        scores: Tensor = self.head(self.norm(x))
        return scores

    def cross_attention_weights(
        self, tokens: Tensor, ptr: Tensor, memory: Tensor, memory_ptr: Tensor
    ) -> list[AttentionWeights]:
        """How much each position looks at each vector of its set, block by block, in evaluation mode.

        Takes what :meth:`forward` takes. ``edges`` of a block is (P, H), for every position of a sequence in turn the
        vectors of its set: one sequence of M positions about N vectors has P = M N.
        """
        x, causal, cross = self._begin(tokens, ptr, memory, memory_ptr)
        weights = []
        with _evaluating(self):
            for block in self.blocks:
                assert isinstance(block, DecoderBlock)
                weights.append(block.cross_attention_weights(x, memory, causal, cross))
                x = block(x, memory, causal, cross)
        return weights

    @torch.no_grad()
    def generate(
        self,
        memory: Tensor,
        memory_ptr: Tensor,
        *,
        start: int,
        end: int,
        longest: int | None = None,
        beams: int = 1,
        length_penalty: float = 0.0,
    ) -> list[Decoded]:
        """Write a sequence about every set, all at once: the most probable one, as far as a search finds it.

        Each step computes one new position per sequence, from the keys and values kept of those before; a set whose
        sequence is finished takes no further part. No dropout acts and no gradient is kept, in training mode as well.

        Args:
            memory: (N, memory_channels) vectors of the sets.
            memory_ptr: (G + 1,) boundaries of the sets.
            start: the token before the first.
            end: the token after the last.
            longest: most tokens to write, start and end not counted; the decoder's own limit where left out.
            beams: sequences of a set that are written at once; 1 is greedy search. See
                :func:`graphattn.model.generation.beam_search`.
            length_penalty: alpha of Wu et al. 2016; 0 compares plain log-probabilities.

        Returns:
            One result per set.

        Raises:
            SettingError: a setting is out of its range.
            GraphError: boundaries do not fit.
            ShapeError: the memory's shape or dtype does not fit.
        """
        for name, token in (("start", start), ("end", end)):
            whole_number(name, token, at_least=0, at_most=self.num_tokens - 1)
        limit = self.longest if longest is None else longest
        whole_number("longest", limit, at_least=0, at_most=self.longest)
        memory_ptr = self._checked_memory(memory, memory_ptr)
        with _evaluating(self):
            return beam_search(
                _Writer(self, memory, memory_ptr),
                len(memory_ptr) - 1,
                start=start,
                end=end,
                longest=limit,
                beams=beams,
                length_penalty=length_penalty,
                device=memory.device,
            )

    def _begin(
        self, tokens: Tensor, ptr: Tensor, memory: Tensor, memory_ptr: Tensor
    ) -> tuple[Tensor, Adjacency, Adjacency]:
        """The positions' first vectors, which of them sees which, and which of the sets' vectors they see."""
        self._check_tokens(tokens)
        ptr = boundaries(ptr, len(tokens), "ptr", tokens.device)
        memory_ptr = self._checked_memory(memory, memory_ptr)
        if len(ptr) != len(memory_ptr):
            raise GraphError(
                f"ptr bounds {len(ptr) - 1} sequences but memory_ptr {len(memory_ptr) - 1} sets; "
                "give one sequence per set."
            )
        self._check_lengths(ptr.diff())
        x = self.token(tokens.long()) + self.position(positions_in_sets(ptr))
        return x, Adjacency.causal(ptr=ptr), Adjacency.cross(ptr=ptr, sender_ptr=memory_ptr)

    def _check_tokens(self, tokens: Tensor) -> None:
        if tokens.ndim != 1 or not holds_integers(tokens):
            raise ShapeError(f"tokens must hold integers of shape (M,), all sequences packed; got {described(tokens)}.")
        outside = (tokens < 0) | (tokens >= self.num_tokens)
        if bool(outside.any()):
            place = int(outside.nonzero()[0])
            raise GraphError(
                f"tokens[{place}] is {int(tokens[place])}, but this decoder has the tokens 0 to {self.num_tokens - 1}."
            )

    def _check_lengths(self, lengths: Tensor) -> None:
        long = lengths > self.longest + 1
        if bool(long.any()):
            which = int(long.nonzero()[0])
            raise ShapeError(
                f"sequence {which} has {int(lengths[which])} positions, its start included, but this decoder has "
                f"{self.longest + 1}; make it with longest={int(lengths.max()) - 1} or more."
            )

    def _checked_memory(self, memory: Tensor, memory_ptr: Tensor) -> Tensor:
        """The boundaries of the sets."""
        if memory.ndim != 2 or memory.shape[1] != self.memory_channels:
            raise ShapeError(f"memory must have shape (N, {self.memory_channels}); got {tuple(memory.shape)}.")
        if memory.dtype != self.head.weight.dtype and not torch.is_autocast_enabled(memory.device.type):
            raise ShapeError(
                f"memory is {memory.dtype}, but the decoder's weights are {self.head.weight.dtype}; "
                "convert one of them."
            )
        return boundaries(memory_ptr, len(memory), "memory_ptr", memory.device)


class _Writer:
    """A decoder that writes, position by position: the scorer of a search.

    Every position is computed once and kept; sequences with the same beginning see the same positions.
    """

    def __init__(self, decoder: SequenceDecoder, memory: Tensor, memory_ptr: Tensor) -> None:
        self.decoder, self.memory_ptr = decoder, memory_ptr
        self.blocks = [block for block in decoder.blocks if isinstance(block, DecoderBlock)]
        self.kept = [block.begin(memory) for block in self.blocks]
        self.positions = 0
        self.path = memory_ptr.new_empty(len(memory_ptr) - 1, 0)  # (rows, length) the positions of each sequence

    def __call__(self, tokens: Tensor, parents: Tensor, sets: Tensor) -> Tensor:
        """(rows, num_tokens) scores of the token after the given ones."""
        decoder, rows = self.decoder, torch.arange(len(tokens), device=tokens.device)
        x = decoder.token(tokens) + decoder.position(torch.full_like(tokens, self.path.shape[1]))
        self.path = torch.cat([self.path[parents], self.positions + rows[:, None]], 1)
        self.positions += len(rows)
        seen = torch.stack([self.path.flatten(), rows.repeat_interleave(self.path.shape[1])])
        own = Adjacency.from_edge_index(seen, num_senders=self.positions, num_receivers=len(rows))
        of_set = offsets(torch.bincount(sets, minlength=len(self.memory_ptr) - 1))
        cross = Adjacency.cross(ptr=of_set, sender_ptr=self.memory_ptr)
        for layer, block in enumerate(self.blocks):
            x, self.kept[layer] = block.write(x, self.kept[layer], own, cross)
        scores: Tensor = decoder.head(decoder.norm(x))
        return scores


def next_tokens(sequences: Iterable[Iterable[int]], start: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
    """What a decoder is trained on: at every position of the true sequence, the token that follows it.

    >>> next_tokens([[7, 8], []], start=0, end=1)
    (tensor([0, 7, 8, 0]), tensor([7, 8, 1, 1]), tensor([0, 3, 4]))

    Args:
        sequences: the tokens of each, start and end left out; lists or tensors of integers.
        start: the token before the first.
        end: the token after the last.

    Returns:
        Inputs (M,), targets (M,) and ``ptr`` (G + 1,), the boundaries of the sequences in both.

    Raises:
        SettingError: a token is no whole number from 0.
    """
    written = [[whole_number("a token", _item(token), at_least=0) for token in tokens] for tokens in sequences]
    inputs = torch.tensor([token for tokens in written for token in (start, *tokens)], dtype=torch.long)
    targets = torch.tensor([token for tokens in written for token in (*tokens, end)], dtype=torch.long)
    return inputs, targets, torch.tensor([0, *accumulate(len(tokens) + 1 for tokens in written)])


def _item(token: object) -> object:
    """A token of a tensor or an array as a number of Python."""
    return token.item() if isinstance(token, Tensor) else token


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """The module in evaluation mode, and every part of it back in its own mode afterwards."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
