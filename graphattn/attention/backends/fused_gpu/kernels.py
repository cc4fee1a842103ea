"""The fused kernels: one sweep over receivers forward; one over receivers and one over senders backward.

A program computes one row, a receiver or a sender, for a block of heads; nobody else writes what it writes. It takes
its entries ``entry_block`` at a time: tiles are (entries, heads, channels), filled up to powers of two by masks. What
many rows add to (tables of edge terms, the score's vector) is summed by :func:`sum_by_group` in parts of its own.

Everything that is a choice of the model is a constant of the compiled kernel; an absent tensor is ``None``.
"""

import triton
import triton.language as tl

from graphattn.attention.backends.fused_gpu.tiles import (
    dropped,
    hidden,
    load_numbers,
    load_rows,
    load_vector,
    slope_of,
    term_row,
    with_term,
)


@triton.jit
def forward(
    rowptr,
    col,
    edge_id,
    query,
    query_row,
    query_head,
    key,
    key_row,
    key_head,
    value,
    value_row,
    value_head,
    key_term,
    key_kind,
    value_term,
    value_kind,
    bias,
    bias_kind,
    vector,
    seed,
    out,  # (R, H, Dv)
    logit,  # (entries, H)
    top,  # (R, H) largest logit, or 0 where all are -inf
    share,  # (R, H) one over the sum of exponentials
    head_count: tl.constexpr,
    key_width: tl.constexpr,
    value_width: tl.constexpr,
    entry_block: tl.constexpr,
    head_block: tl.constexpr,
    key_block: tl.constexpr,
    value_block: tl.constexpr,
    score: tl.constexpr,
    softmax: tl.constexpr,
    scale: tl.constexpr,
    slope: tl.constexpr,
    drop_below: tl.constexpr,
    kept: tl.constexpr,
):
    """Out and logits of a receiver. The softmax is summed as it goes, rescaled where a larger logit turns up."""
    dtype: tl.constexpr = out.dtype.element_ty
    receiver = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * head_block + tl.arange(0, head_block)
    x, y = tl.arange(0, key_block), tl.arange(0, value_block)
    of_key = (heads < head_count)[None, :, None] & (x < key_width)[None, None, :]
    of_value = (heads < head_count)[None, :, None] & (y < value_width)[None, None, :]
    here = receiver + tl.arange(0, 1)
    asked = load_rows(query, here, query_row, query_head, heads, x, of_key, dtype)
    by = asked * scale if score == "dot" else load_vector(vector, heads, x, of_key, key_width, dtype)
    highest = tl.full((head_block,), float("-inf"), dtype)
    total = tl.zeros((head_block,), dtype)
    mixed = tl.zeros((head_block, value_block), dtype)
    first, end = tl.load(rowptr + receiver), tl.load(rowptr + receiver + 1)
    for start in range(first, end, entry_block):
        entry = tl.arange(0, entry_block).to(tl.int64) + start
        real = entry < end
        inside = real[:, None] & (heads < head_count)[None, :]
        sender = tl.load(col + entry, mask=real, other=0).to(tl.int64)
        edge = tl.load(edge_id + entry, mask=real, other=-1)
        mask = real[:, None, None] & of_key
        seen = load_rows(key, sender, key_row, key_head, heads, x, mask, dtype)
        seen = with_term(seen, key_term, key_kind, edge, heads, x, mask, head_count, key_width)
        logits = tl.sum(by * seen if score == "dot" else by * hidden(asked + seen, score, slope), 2)
        if bias is not None:
            stands = inside & (edge >= 0)[:, None]
            logits += load_numbers(bias, term_row(bias_kind, edge), heads, head_count, stands, 0.0, dtype)
        tl.store(logit + entry[:, None] * head_count + heads[None, :], logits, mask=inside)
        if softmax:
            logits = tl.where(inside, logits, float("-inf"))
            higher = tl.maximum(highest, tl.max(logits, 0))
            base = tl.where(higher == float("-inf"), 0.0, higher)
            shrunk = tl.exp(highest - base)
            weight = tl.exp(logits - base[None, :])
            total = total * shrunk + tl.sum(weight, 0)
            mixed *= shrunk[:, None]
            highest = higher
        else:
            weight = tl.where((logits < 0) | ~inside, 0.0, logits)
        weight = dropped(weight, entry, heads, head_count, seed, drop_below, kept)
        mask = real[:, None, None] & of_value
        seen = load_rows(value, sender, value_row, value_head, heads, y, mask, dtype)
        seen = with_term(seen, value_term, value_kind, edge, heads, y, mask, head_count, value_width)
        mixed += tl.sum(weight[:, :, None] * seen, 0)
    if softmax:
        part = 1.0 / tl.where(total == 0, 1.0, total)
        mixed *= part[:, None]
        place = receiver * head_count + heads
        base = tl.where(highest == float("-inf"), 0.0, highest)
        tl.store(top + place, base, mask=heads < head_count)
        tl.store(share + place, part, mask=heads < head_count)
    place = (receiver * head_count + heads[None, :, None]) * value_width + y[None, None, :]
    tl.store(out + place, mixed[None, :, :], mask=of_value)


@triton.jit
def backward_receivers(
    rowptr,
    col,
    edge_id,
    query,
    query_row,
    query_head,
    key,
    key_row,
    key_head,
    value,
    value_row,
    value_head,
    key_term,
    key_kind,
    value_term,
    value_kind,
    vector,
    seed,
    out,
    logit,
    top,
    share,
    grad_out,  # (R, H, Dv)
    weight_kept,  # (entries, H), written: weights after dropout
    grad_logit,  # (entries, H), written
    grad_query,  # (R, H, Dk)
    grad_key_term,  # (E, H, Dk) where each edge has a row of its own, else None
    grad_value_term,  # (E, H, Dv)
    grad_bias,  # (E, H)
    one_term: tl.constexpr,  # the key's term is the value's as well, and grad_key_term gets both gradients
    head_count: tl.constexpr,
    key_width: tl.constexpr,
    value_width: tl.constexpr,
    entry_block: tl.constexpr,
    head_block: tl.constexpr,
    key_block: tl.constexpr,
    value_block: tl.constexpr,
    score: tl.constexpr,
    softmax: tl.constexpr,
    scale: tl.constexpr,
    slope: tl.constexpr,
    drop_below: tl.constexpr,
    kept: tl.constexpr,
):
    """Gradients of a receiver's logits and query, and of its edges' own terms."""
    dtype: tl.constexpr = out.dtype.element_ty
    receiver = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * head_block + tl.arange(0, head_block)
    x, y = tl.arange(0, key_block), tl.arange(0, value_block)
    of_key = (heads < head_count)[None, :, None] & (x < key_width)[None, None, :]
    of_value = (heads < head_count)[None, :, None] & (y < value_width)[None, None, :]
    here = receiver + tl.arange(0, 1)
    asked = load_rows(query, here, query_row, query_head, heads, x, of_key, dtype)
    by = asked * scale if score == "dot" else load_vector(vector, heads, x, of_key, key_width, dtype)
    packed: tl.constexpr = head_count * value_width
    wanted = load_rows(grad_out, here, packed, value_width, heads, y, of_value, dtype)
    if softmax:
        mean = tl.sum(wanted * load_rows(out, here, packed, value_width, heads, y, of_value, dtype), 2)  # (1, heads)
        base = load_numbers(top, here, heads, head_count, (heads < head_count)[None, :], 0.0, dtype)
        part = load_numbers(share, here, heads, head_count, (heads < head_count)[None, :], 0.0, dtype)
    to_query = tl.zeros((head_block, key_block), dtype)
    first, end = tl.load(rowptr + receiver), tl.load(rowptr + receiver + 1)
    for start in range(first, end, entry_block):
        entry = tl.arange(0, entry_block).to(tl.int64) + start
        real = entry < end
        inside = real[:, None] & (heads < head_count)[None, :]
        sender = tl.load(col + entry, mask=real, other=0).to(tl.int64)
        edge = tl.load(edge_id + entry, mask=real, other=-1)
        stands = (edge >= 0)[:, None] & inside
        weight = load_numbers(logit, entry, heads, head_count, inside, float("-inf"), dtype)
        weight = tl.exp(weight - base) * part if softmax else tl.where(weight < 0, 0.0, weight)
        mask = real[:, None, None] & of_value
        seen = load_rows(value, sender, value_row, value_head, heads, y, mask, dtype)
        seen = with_term(seen, value_term, value_kind, edge, heads, y, mask, head_count, value_width)
        grad = dropped(tl.sum(wanted * seen, 2), entry, heads, head_count, seed, drop_below, kept)
        grad = weight * (grad - mean) if softmax else tl.where(weight == 0, 0.0, grad)
        weight = dropped(weight, entry, heads, head_count, seed, drop_below, kept)
        place = entry[:, None] * head_count + heads[None, :]
        tl.store(grad_logit + place, grad, mask=inside)
        tl.store(weight_kept + place, weight, mask=inside)
        if grad_bias is not None:
            tl.store(grad_bias + edge[:, None] * head_count + heads[None, :], grad, mask=stands)
        if grad_value_term is not None:
            row = (edge[:, None, None] * head_count + heads[None, :, None]) * value_width + y[None, None, :]
            tl.store(grad_value_term + row, weight[:, :, None] * wanted, mask=stands[:, :, None] & of_value)
        mask = real[:, None, None] & of_key
        seen = load_rows(key, sender, key_row, key_head, heads, x, mask, dtype)
        seen = with_term(seen, key_term, key_kind, edge, heads, x, mask, head_count, key_width)
        if score == "dot":
            to_key = grad[:, :, None] * by
            to_query += tl.sum(grad[:, :, None] * seen, 0)
        else:
            to_key = grad[:, :, None] * by * slope_of(asked + seen, score, slope)
            to_query += tl.sum(to_key, 0)
        if grad_key_term is not None:
            if one_term:
                to_key += weight[:, :, None] * wanted
            row = (edge[:, None, None] * head_count + heads[None, :, None]) * key_width + x[None, None, :]
            tl.store(grad_key_term + row, to_key, mask=stands[:, :, None] & of_key)
    if score == "dot":
        to_query *= scale
    place = (receiver * head_count + heads[None, :, None]) * key_width + x[None, None, :]
    tl.store(grad_query + place, to_query[None, :, :], mask=of_key)


@triton.jit
def backward_senders(
    rowptr,  # of the transpose
    col,
    edge_id,
    slots,  # (entries,) the entry of the adjacency behind each of its transpose
    query,
    query_row,
    query_head,
    key,
    key_row,
    key_head,
    key_term,
    key_kind,
    vector,
    grad_out,
    weight_kept,
    grad_logit,
    grad_key,  # (S, H, Dk)
    grad_value,  # (S, H, Dv), or None where the key is the value as well: then grad_key gets both gradients
    head_count: tl.constexpr,
    key_width: tl.constexpr,
    value_width: tl.constexpr,
    entry_block: tl.constexpr,
    head_block: tl.constexpr,
    key_block: tl.constexpr,
    value_block: tl.constexpr,
    score: tl.constexpr,
    scale: tl.constexpr,
    slope: tl.constexpr,
):
    """Gradients of a sender's key and value."""
    dtype: tl.constexpr = weight_kept.dtype.element_ty
    sender = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * head_block + tl.arange(0, head_block)
    x, y = tl.arange(0, key_block), tl.arange(0, value_block)
    of_key = (heads < head_count)[None, :, None] & (x < key_width)[None, None, :]
    of_value = (heads < head_count)[None, :, None] & (y < value_width)[None, None, :]
    if score != "dot":
        here = sender + tl.arange(0, 1)
        sent = load_rows(key, here, key_row, key_head, heads, x, of_key, dtype)
        by = load_vector(vector, heads, x, of_key, key_width, dtype)
    to_key = tl.zeros((head_block, key_block), dtype)
    to_value = tl.zeros((head_block, value_block), dtype)
    first, end = tl.load(rowptr + sender), tl.load(rowptr + sender + 1)
    for start in range(first, end, entry_block):
        entry = tl.arange(0, entry_block).to(tl.int64) + start
        real = entry < end
        inside = real[:, None] & (heads < head_count)[None, :]
        receiver = tl.load(col + entry, mask=real, other=0).to(tl.int64)
        slot = tl.load(slots + entry, mask=real, other=0)
        mask = real[:, None, None] & of_key
        asked = load_rows(query, receiver, query_row, query_head, heads, x, mask, dtype)
        grad = load_numbers(grad_logit, slot, heads, head_count, inside, 0.0, dtype)[:, :, None]
        if score == "dot":
            to_key += tl.sum(grad * asked, 0)
        else:
            edge = tl.load(edge_id + entry, mask=real, other=-1)
            both = with_term(asked + sent, key_term, key_kind, edge, heads, x, mask, head_count, key_width)
            to_key += tl.sum(grad * by * slope_of(both, score, slope), 0)
        mask = real[:, None, None] & of_value
        wanted = load_rows(grad_out, receiver, head_count * value_width, value_width, heads, y, mask, dtype)
        weight = load_numbers(weight_kept, slot, heads, head_count, inside, 0.0, dtype)
        to_value += tl.sum(weight[:, :, None] * wanted, 0)
    if score == "dot":
        to_key *= scale
    if grad_value is None:
        to_key += to_value
    else:
        place = (sender * head_count + heads[None, :, None]) * value_width + y[None, None, :]
        tl.store(grad_value + place, to_value[None, :, :], mask=of_value)
    place = (sender * head_count + heads[None, :, None]) * key_width + x[None, None, :]
    tl.store(grad_key + place, to_key[None, :, :], mask=of_key)


@triton.jit
def sum_by_group(
    group_ptr,  # (groups + 1,) group g has the places group_ptr[g] to group_ptr[g + 1]
    order,  # (places,) the entry at each place, or None: the place itself
    receiver_of,  # (entries,)
    sender_of,
    edge_id,
    number,  # (entries, H)
    rows,  # (R, H, width), of the receivers
    rows_row,
    rows_head,
    key,  # of the senders, for an additive score
    key_row,
    key_head,
    key_term,
    key_kind,
    total,  # (groups, parts, H, width)
    parts,
    what: tl.constexpr,  # "rows", or from rows + key: "hidden" or "slope" of the score
    head_count: tl.constexpr,
    width: tl.constexpr,
    entry_block: tl.constexpr,
    head_block: tl.constexpr,
    block: tl.constexpr,
    score: tl.constexpr,
    slope: tl.constexpr,
):
    """Sum of number x vector over a part of a group of entries."""
    dtype: tl.constexpr = total.dtype.element_ty
    group = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1).to(tl.int64)
    heads = tl.program_id(2) * head_block + tl.arange(0, head_block)
    x = tl.arange(0, block)
    of_row = (heads < head_count)[None, :, None] & (x < width)[None, None, :]
    summed = tl.zeros((head_block, block), dtype)
    begin = tl.load(group_ptr + group)
    length = tl.load(group_ptr + group + 1) - begin
    end = begin + length * (part + 1) // parts
    for start in range(begin + length * part // parts, end, entry_block):
        place = tl.arange(0, entry_block).to(tl.int64) + start
        real = place < end
        entry = place
        if order is not None:
            entry = tl.load(order + place, mask=real, other=0)
        mask = real[:, None, None] & of_row
        factor = load_numbers(
            number, entry, heads, head_count, real[:, None] & (heads < head_count)[None, :], 0.0, dtype
        )
        receiver = tl.load(receiver_of + entry, mask=real, other=0)
        vectors = load_rows(rows, receiver, rows_row, rows_head, heads, x, mask, dtype)
        if what != "rows":
            sender = tl.load(sender_of + entry, mask=real, other=0)
            edge = tl.load(edge_id + entry, mask=real, other=-1)
            vectors += load_rows(key, sender, key_row, key_head, heads, x, mask, dtype)
            vectors = with_term(vectors, key_term, key_kind, edge, heads, x, mask, head_count, width)
            vectors = hidden(vectors, score, slope) if what == "hidden" else slope_of(vectors, score, slope)
        summed += tl.sum(factor[:, :, None] * vectors, 0)
    place = ((group * parts + part) * head_count + heads[None, :, None]) * width + x[None, None, :]
    tl.store(total + place, summed[None, :, :], mask=of_row)
