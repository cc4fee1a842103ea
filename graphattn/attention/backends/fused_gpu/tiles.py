"""What the Triton kernels are made of: reading tiles of (entries, heads, channels), scores, dropout.

Triton compiles both sides of an early return, so a choice between constants is written with ``else``.
"""

import triton
import triton.language as tl


@triton.jit
def load_rows(pointer, index, row_stride, head_stride, heads, columns, mask, dtype: tl.constexpr):
    """(indices, heads, columns) numbers of a matrix of rows, zero where masked out."""
    place = index[:, None, None] * row_stride + heads[None, :, None] * head_stride + columns[None, None, :]
    return tl.load(pointer + place, mask=mask, other=0.0).to(dtype)


@triton.jit
def load_numbers(pointer, row, heads, head_count: tl.constexpr, mask, other: tl.constexpr, dtype: tl.constexpr):
    """(rows, heads) numbers of a packed (..., H) array."""
    return tl.load(pointer + row[:, None] * head_count + heads[None, :], mask=mask, other=other).to(dtype)


@triton.jit
def term_row(kind, edge):
    """The row of a table that belongs to each edge: its kind's, or its own."""
    if kind is None:
        return edge
    else:
        return tl.load(kind + edge, mask=edge >= 0, other=0).to(tl.int64)


@triton.jit
def with_term(vectors, table, kind, edge, heads, columns, mask, head_count: tl.constexpr, width: tl.constexpr):
    """``vectors`` (entries, heads, columns) and what each edge adds to them; an added self loop has edge -1."""
    if table is None:
        return vectors
    else:
        stands = mask & (edge >= 0)[:, None, None]
        row = term_row(kind, edge)
        return vectors + load_rows(table, row, head_count * width, width, heads, columns, stands, vectors.dtype)


@triton.jit
def load_vector(vector, heads, columns, mask, width: tl.constexpr, dtype: tl.constexpr):
    """(1, heads, columns) the vector of an additive score, ones where there is none; zero where masked out."""
    if vector is None:
        return mask.to(dtype)
    else:
        return tl.load(vector + heads[None, :, None] * width + columns[None, None, :], mask=mask, other=0.0).to(dtype)


@triton.jit
def hidden(total, score: tl.constexpr, slope: tl.constexpr):
    """What an additive score makes of query + key."""
    if score == "tanh":
        shrunk = tl.exp(-2.0 * tl.abs(total))
        size = (1.0 - shrunk) / (1.0 + shrunk)
        return tl.where(total < 0, -size, size)
    else:
        return tl.where(total > 0, total, total * slope)


@triton.jit
def slope_of(total, score: tl.constexpr, slope: tl.constexpr):
    """The derivative of ``hidden(total)``."""
    if score == "tanh":
        active = hidden(total, score, slope)
        return 1.0 - active * active
    else:
        ones = tl.full(total.shape, 1.0, total.dtype)
        return tl.where(total > 0, ones, ones * slope)


@triton.jit
def mix(word):
    """The 32-bit finalizer of MurmurHash3 (Appleby 2011, public domain)."""
    word = (word ^ (word >> 16)) * tl.full((), 0x85EBCA6B, tl.uint32)
    word = (word ^ (word >> 13)) * tl.full((), 0xC2B2AE35, tl.uint32)
    return word ^ (word >> 16)


@triton.jit
def dropped(numbers, entry, heads, head_count: tl.constexpr, seed, drop_below: tl.constexpr, kept: tl.constexpr):
    """(entries, heads) numbers times ``dropout_factor``."""
    if drop_below == 0:
        return numbers
    else:
        counter = (entry[:, None] * head_count + heads[None, :]).to(tl.uint32)
        word = mix(mix(counter) ^ tl.load(seed).to(tl.uint32))
        return tl.where(word.to(tl.int64) < drop_below, 0.0, numbers * kept)
