"""The rules by which receivers see senders, as the rows of a CSR matrix: ``rowptr`` and ``col``, int64.

``ptr`` (G + 1,) bounds the receivers of each graph, ``sender_ptr`` the senders.
"""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphattn.checks import whole_number
from graphattn.errors import SettingError

Rows = tuple[Tensor, Tensor]  # rowptr (R + 1,), col (entries,)


def offsets(counts: Tensor) -> Tensor:
    """(n,) counts -> (n + 1,), where each begins and the last ends."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def spans(first: Tensor, end: Tensor) -> Rows:
    """Receiver i sees the senders ``first[i]`` to ``end[i] - 1``."""
    rowptr = offsets(end - first)
    entries = torch.arange(int(rowptr[-1]), device=first.device)
    return rowptr, entries + (first - rowptr[:-1]).repeat_interleave(end - first, output_size=len(entries))


def cross_rows(ptr: Tensor, sender_ptr: Tensor) -> Rows:
    """Every receiver sees every sender of its graph."""
    receivers = ptr.diff()
    return spans(sender_ptr[:-1].repeat_interleave(receivers), sender_ptr[1:].repeat_interleave(receivers))


def window_rows(ptr: Tensor, left: int | None, right: int | None) -> Rows:
    """Position i sees the positions i - left to i + right of its sequence; ``None`` reaches to the end."""
    sizes = ptr.diff()
    left, right = (None if reach is None else min(reach, int(ptr[-1])) for reach in (left, right))
    first, end = (bound.repeat_interleave(sizes) for bound in (ptr[:-1], ptr[1:]))
    position = torch.arange(int(ptr[-1]), device=ptr.device)
    if left is not None:
        first = torch.maximum(first, position - left)
    if right is not None:
        end = torch.minimum(end, position + right + 1)
    return spans(first, end)


def grid_rows(height: int, width: int, size: tuple[int, ...]) -> Rows:
    """Pixel (row, column), counted row by row, sees the ``size`` pixels around it that lie in the image."""
    height, width = whole_number("height", height, at_least=0), whole_number("width", width, at_least=0)
    size = tuple(whole_number("size", side, at_least=1) for side in size)
    if len(size) != 2 or not all(side % 2 for side in size):
        raise SettingError(f"size must be odd, such as 3 or (3, 5), so that a pixel is the middle; got {size}.")
    (row_ptr, rows), (column_ptr, columns) = (
        window_rows(torch.tensor([0, sides]), side // 2, side // 2)
        for sides, side in zip((height, width), size, strict=True)
    )
    seen_rows, seen_columns = row_ptr.diff(), column_ptr.diff()
    seen = seen_rows[:, None] * seen_columns  # (height, width) pixels in reach
    rowptr = offsets(seen.flatten())
    pixel = torch.arange(height * width).repeat_interleave(seen.flatten())
    place = torch.arange(len(pixel)) - rowptr[pixel]  # of an entry in its row: rows of the patch, then its columns
    row, column = pixel // max(width, 1), pixel % max(width, 1)
    sender_row = rows[row_ptr[row] + place // seen_columns[column]]
    return rowptr, sender_row * width + columns[column_ptr[column] + place % seen_columns[column]]


def hop_rows(rowptr: Tensor, col: Tensor, hops: int) -> Rows:
    """A node sees those from which at most ``hops`` entries of these rows lead to it, itself by none."""
    size = len(rowptr) - 1
    step = sparse.csr_array((np.ones(len(col), dtype=bool), col.cpu().numpy(), rowptr.cpu().numpy()), (size, size))
    near = sparse.eye_array(size, dtype=bool, format="csr")
    within = step + near
    for _ in range(hops):
        reached = within @ near
        if reached.nnz == near.nnz:  # whatever can be reached is
            break
        near = reached
    near.sort_indices()
    ends, senders = (torch.from_numpy(part).long().to(col.device) for part in (near.indptr, near.indices))
    return ends, senders
