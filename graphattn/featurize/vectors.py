"""Everything is a set of vectors: words, pixels and atoms as rows, and sets of different sizes in one batch.

A set is a tensor with a row per member. Sound is in ``sound.py``; the nodes of a graph are vectors already, ``data.x``.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphattn.checks import whole_number
from graphattn.csr import described, holds_integers
from graphattn.errors import GraphError, SettingError, ShapeError


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that have a code of their own, and one code for all others.

    A token is any text: a word, a letter, the symbol of an element. Code 0 is the unknown token; known token k, counted
    from 0, has code k + 1. A Python string is a sequence of its letters: split a text into words before it comes here.

    >>> vocabulary = Vocabulary.of([["I", "saw", "a", "saw"], ["a", "cat"]])
    >>> vocabulary.known
    ('a', 'saw', 'I', 'cat')
    >>> vocabulary.codes(["I", "saw", "a", "dog"])
    tensor([3, 2, 1, 0])
    >>> vocabulary.words(vocabulary.codes(["I", "saw", "a", "dog"]))
    ['I', 'saw', 'a', '<unknown>']

    Args:
        known: the tokens, in the order of their codes.
        unknown: what code 0 reads as.

    Raises:
        SettingError: a token is no text, comes twice or is the unknown one.
    """

    known: tuple[str, ...]
    unknown: str = "<unknown>"
    _code: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.known, str):
            raise SettingError(f"known is a list of tokens, got the text {self.known!r}; write [{self.known!r}].")
        object.__setattr__(self, "known", tuple(self.known))
        _check_texts((*self.known, self.unknown))
        token, count = Counter((self.unknown, *self.known)).most_common(1)[0]
        if count > 1:
            raise SettingError(f"a vocabulary has each token once, the unknown one too; got {token!r} {count} times.")
        object.__setattr__(self, "_code", {token: code for code, token in enumerate(self.known, start=1)})

    @classmethod
    def of(
        cls,
        sequences: Iterable[Iterable[str]],
        *,
        at_least: int = 1,
        reserved: Sequence[str] = (),
        unknown: str = "<unknown>",
    ) -> "Vocabulary":
        """The vocabulary of training sequences: reserved tokens, then the others, most frequent first.

        Tokens of equal frequency are in the order of their Unicode code points, so that the order of the sequences does
        not matter.

        Args:
            sequences: sequences of tokens.
            at_least: how often a token must occur in all sequences together to have a code; at least 1.
            reserved: tokens that have the codes 1, 2, ..., whether or not they occur: start and end of an output.
            unknown: what code 0 reads as; where it occurs in the sequences it stays unknown.

        Raises:
            SettingError: ``at_least`` is below 1, ``reserved`` is one text, or a token is none.
        """
        whole_number("at_least", at_least, at_least=1)
        if isinstance(reserved, str):
            raise SettingError(f"reserved is a list of tokens, got the text {reserved!r}; write [{reserved!r}].")
        counts = Counter(token for sequence in sequences for token in sequence)
        _check_texts(counts)
        kept = {token for token in counts if counts[token] >= at_least} - {*reserved, unknown}
        return cls((*reserved, *sorted(kept, key=lambda token: (-counts[token], token))), unknown)

    def __len__(self) -> int:
        """Number of codes, that of the unknown token included."""
        return len(self.known) + 1

    def codes(self, tokens: Iterable[str]) -> Tensor:
        """(N,) int64: the code of each token, 0 where it is not known. As ``(N, 1)`` they are a network's ``x``."""
        return torch.tensor([self._code.get(token, 0) for token in tokens], dtype=torch.long)

    def one_hot(self, tokens: Iterable[str]) -> Tensor:
        """(N, len(vocabulary)) float32: a one at the code of each token, zeros elsewhere."""
        return functional.one_hot(self.codes(tokens), len(self)).float()

    def words(self, codes: Tensor | Sequence[int]) -> list[str]:
        """The tokens behind (N,) codes; code 0 reads as the unknown token.

        Raises:
            ShapeError: ``codes`` are not one row of integers.
            GraphError: a code is not in [0, len(vocabulary)).
        """
        row = codes if isinstance(codes, Tensor) else torch.tensor(codes, dtype=None if len(codes) else torch.long)
        if row.ndim != 1 or not holds_integers(row):
            raise ShapeError(f"codes must be integers of shape (N,); got {described(row)}.")
        check_codes(row[:, None], (len(self),), "codes")
        texts = (self.unknown, *self.known)
        return [texts[code] for code in row.tolist()]


def one_hot_columns(codes: Tensor, widths: Sequence[int]) -> Tensor:
    """Columns of integer codes as one-hot vectors side by side, such as the atoms of a molecule.

    Times the table of a :class:`graphattn.model.embedding.CodeEmbedding` it is that embedding.

    >>> one_hot_columns(torch.tensor([[1, 0], [0, 2]]), widths=(2, 3))
    tensor([[0., 1., 1., 0., 0.],
            [1., 0., 0., 0., 1.]])

    Args:
        codes: (N, C) integers, such as ``MoleculeFeaturizer()(smiles).x``.
        widths: number of codes of each of the C columns: ``[column.width for column in featurizer.node_columns]``.

    Returns:
        (N, sum(widths)) float32, C ones in each row.

    Raises:
        ShapeError: ``codes`` are no integers, or have another number of columns.
        GraphError: a code is not in [0, width) of its column.
    """
    check_codes(codes, widths, "codes")
    first = torch.tensor([0, *accumulate(widths)], device=codes.device)[:-1]
    return torch.zeros(len(codes), sum(widths), device=codes.device).scatter(1, codes.long() + first, 1.0)


def pixels(image: Any) -> Tensor:
    """The pixels of an image as vectors, row by row: :meth:`Adjacency.grid` counts them in the same order.

    >>> pixels(torch.tensor([[0, 51], [102, 255]], dtype=torch.uint8)).flatten()
    tensor([0.0000, 0.2000, 0.4000, 1.0000])

    Args:
        image: (height, width), or (height, width, channels) with 1 to 4 channels such as red, green, blue; a tensor, or
            what NumPy can make an array of, such as a PIL image. uint8 is 0 to 255; floats are taken as they are.

    Returns:
        (height * width, channels); of uint8 float32 in [0, 1], of floats their own dtype.

    Raises:
        ShapeError: the image has other axes or another dtype.
    """
    given = image if isinstance(image, Tensor) else torch.from_numpy(np.array(image, order="C"))
    colored = given[..., None] if given.ndim == 2 else given
    if colored.ndim != 3 or not 1 <= colored.shape[2] <= 4:
        raise ShapeError(
            f"an image has shape (height, width) or (height, width, channels) with 1 to 4 channels; got "
            f"{described(given)}. Where channels come first, use image.permute(1, 2, 0)."
        )
    if given.dtype != torch.uint8 and not given.is_floating_point():
        raise ShapeError(f"an image is uint8 or floating point; got {described(given)}. Divide it by its white.")
    vectors = colored.reshape(-1, colored.shape[2])
    return vectors.float() / 255 if given.dtype == torch.uint8 else vectors


def join_sets(sets: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Sets of different sizes as one batch, padded nowhere.

    Rows of set g are ``x[ptr[g]:ptr[g + 1]]``; ``x.split(ptr.diff().tolist())`` gives the sets back. An empty set is a
    set like any other. Labels per member, (size,), are joined by the same call.

    >>> x, ptr = join_sets([torch.ones(2, 3), torch.zeros(4, 3)])
    >>> x.shape, ptr
    (torch.Size([6, 3]), tensor([0, 2, 6]))

    Args:
        sets: G tensors (size, F), or any that differ in nothing but their first axis.

    Returns:
        ``x`` (N, F), the rows of all sets one after another; ``ptr`` (G + 1,) int64, the boundaries that
        ``Adjacency.complete(ptr=ptr)`` and PyG's ``Batch`` take.

    Raises:
        ShapeError: there is no set, or two differ in width, dtype or device; the message says which.
    """
    if not len(sets):
        raise ShapeError("a batch needs at least one set, which may be empty; got none.")
    first = sets[0]
    for place, each in enumerate(sets):
        if each.ndim < 1 or (each.shape[1:], each.dtype, each.device) != (first.shape[1:], first.dtype, first.device):
            raise ShapeError(
                f"set {place} is {described(each)} on {each.device}, but set 0 is {described(first)} on "
                f"{first.device}; sets of one batch differ in nothing but their number of rows."
            )
    ptr = torch.tensor([0, *accumulate(len(each) for each in sets)], device=first.device)
    return torch.cat(list(sets)), ptr


def _check_texts(tokens: Iterable[object]) -> None:
    for token in tokens:
        if not isinstance(token, str):
            raise SettingError(f"a token is a text, got {token!r}; use str(token).")


def check_codes(codes: Tensor, widths: Sequence[int], name: str) -> None:
    """Refuse what is no (rows, columns) of codes, and codes that do not fit their columns, naming the first."""
    if codes.ndim != 2 or codes.shape[1] != len(widths) or not holds_integers(codes):
        raise ShapeError(f"{name} must hold integer codes of shape (rows, {len(widths)}); got {described(codes)}.")
    outside = (codes < 0) | (codes >= torch.tensor(widths, device=codes.device))
    if bool(outside.any()):
        row, column = outside.nonzero()[0].tolist()
        raise GraphError(
            f"{name}[{row}, {column}] is {int(codes[row, column])}, but its column has codes 0 to {widths[column] - 1}."
        )
