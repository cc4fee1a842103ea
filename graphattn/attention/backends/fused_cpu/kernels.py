"""The fused kernels: one sweep over receivers forward; one over receivers and one over senders backward.

A kernel computes rows: a row is one receiver (or one sender), and nobody else writes what it writes, so there are no
atomics and no order of threads to depend on. Threads draw runs of rows from a counter. What many rows add to (the
gradients of tables and of the score's vector) is summed per task and then over the tasks, in their order.

Within a row, heads come in blocks that fit into registers: ``block`` heads of ``key_width`` and ``value_width``
lanes. Those three, the float type and the score are constants of a compiled kernel; everything else is an argument.
Arguments come as one array of int64, numbers and addresses, in the order below: a call costs nothing per argument.
"""

import hashlib
from pathlib import Path
from typing import Any

from numba import cfunc, njit, types

from graphattn.attention.backends.fused_cpu import vectors
from graphattn.attention.backends.fused_cpu.vectors import (
    counting,
    doubles,
    exp,
    fill,
    floats,
    ints32,
    ints64,
    lanes,
    load,
    offset,
    prefetch,
    spread,
    store,
    sum_heads,
    take,
    tanh,
    where,
    zeros,
)

(
    NEXT,  # the counter that tasks are drawn from
    TASKS,  # how many there are
    RUNS,  # int64 (TASKS + 1,): task t has the rows RUNS[t] to RUNS[t + 1]
    ROWPTR,  # int32, of the adjacency, or of its transpose in the sweep over senders
    COL,  # int32, senders, or receivers in the sweep over senders
    SLOT,  # int64, in the sweep over senders: the entry of the adjacency behind each entry of its transpose
    EDGE_ID,  # int64, by entry of the adjacency (or of its transpose); negative where no edge stands behind it
    HEADS,
    ENTRIES,
    QUERY,
    QUERY_STRIDE,  # numbers from one row to the next
    KEY,
    KEY_STRIDE,
    VALUE,
    VALUE_STRIDE,
    OUT,  # (R, H, Dv)
    WEIGHT,  # (entries, H), normalized, before dropout
    KEY_TERM,  # table of vectors that edges add to keys, or 0
    KEY_KIND,  # int64, the row of each edge in that table, or 0: the edge's own number
    VALUE_TERM,
    VALUE_KIND,
    BIAS,
    BIAS_KIND,
    VECTOR,  # (H, Dk), the vector of an additive score, or 0: ones
    SOFTMAX,  # 1, or 0 for relu
    CONSTANTS,  # float64: scale of the dot product, negative slope, factor of a weight that dropout keeps
    DROP_BELOW,  # a weight drops where its random word is below this; 0 without dropout
    SEED,
    GRAD_OUT,  # (R, H, Dv)
    GRAD_OUT_STRIDE,
    GRAD_LOGIT,  # (entries, H): the sweep over receivers writes it, that over senders reads it
    GRAD_QUERY,
    GRAD_QUERY_STRIDE,
    GRAD_KEY,
    GRAD_KEY_STRIDE,
    GRAD_VALUE,
    GRAD_VALUE_STRIDE,
    KEY_IS_VALUE,  # 1 where both are one tensor: then GRAD_KEY is GRAD_VALUE, and gets the sum
    GRAD_KEY_TERM,  # a table per task, or one for all where each edge has a row of its own
    GRAD_KEY_TERM_STRIDE,  # bytes from one task's table to the next; 0 where there is one
    GRAD_VALUE_TERM,
    GRAD_VALUE_TERM_STRIDE,
    GRAD_BIAS,
    GRAD_BIAS_STRIDE,
    GRAD_VECTOR,
    GRAD_VECTOR_STRIDE,
    ARGUMENTS,  # how many there are
) = range(47)
SOURCE = hashlib.sha256(b"".join(Path(file).read_bytes() for file in (__file__, vectors.__file__))).hexdigest()
AHEAD, ROWS_AHEAD = 8, 4  # how many entries, and rows, early memory is asked for
SEGMENT = 64  # entries summed before their sum is added to that of the row: long rows lose few digits that way
SCALE, SLOPE, KEPT = range(3)
DOT, LEAKY_RELU, TANH = range(3)  # scores
FORWARD, RECEIVERS, SENDERS = range(3)  # sweeps


@njit(forceinline=True)
def with_term(vector, table, kind, edge, width, x):
    """``vector`` and what the edge adds to it: numbers from ``x`` on of the edge's row, ``width`` long, in a table."""
    if table == 0 or edge < 0:
        return vector
    row = edge if kind == 0 else ints64(kind)[edge]
    return vector + load(offset(floats(table, vector), row * width + x), vector)


@njit(forceinline=True)
def add_to(pointer, vector):
    """Add to the numbers at ``pointer``."""
    store(pointer, load(pointer, vector) + vector)


@njit(forceinline=True)
def add_to_term(table, kind, edge, width, x, vector):
    """Add to the edge's row of a table, which nobody else writes meanwhile."""
    if table != 0 and edge >= 0:
        row = edge if kind == 0 else ints64(kind)[edge]
        add_to(offset(floats(table, vector), row * width + x), vector)


@njit(forceinline=True)
def ask_for(a, array, stride, col, entry, x, like):
    """Prefetch what will be loaded from ``array`` for the entry ``AHEAD`` of this one, if there is one."""
    if entry + AHEAD < a[ENTRIES]:
        prefetch(offset(floats(a[array], like), types.int64(col[entry + AHEAD]) * a[stride] + x), like)


@njit(forceinline=True)
def mix(word):
    """The 32-bit finalizer of MurmurHash3 (Appleby 2011, public domain)."""
    word = (word ^ (word >> 16)) * 0x85EBCA6B
    word = (word ^ (word >> 13)) * 0xC2B2AE35
    return word ^ (word >> 16)


@njit(forceinline=True)
def dropped(weight, a, first):
    """Weights of the entry and head number ``first`` and the next ones after dropout, as ``dropout_factor`` has it."""
    if a[DROP_BELOW] == 0:
        return weight
    word = mix(mix(counting(first, weight)) ^ a[SEED])
    return where(word < a[DROP_BELOW], fill(weight, 0.0), weight * doubles(a[CONSTANTS])[KEPT])


@njit(forceinline=True)
def hidden(total, slope, score):
    """What an additive score makes of query + key."""
    if score == TANH:
        return tanh(total)
    return where(total > 0.0, total, total * slope)


@njit(forceinline=True)
def slope_of(total, active, slope, score):
    """The derivative of ``active = hidden(total)``."""
    if score == TANH:
        return fill(active, 1.0) - active * active
    return where(total > 0.0, fill(total, 1.0), fill(total, slope))


@njit(forceinline=True)
def vector_of(a, x, key):
    """The part of the score's vector that belongs to the lanes of ``key``."""
    return fill(key, 1.0) if a[VECTOR] == 0 else load(offset(floats(a[VECTOR], key), x), key)


@njit(error_model="numpy", forceinline=True)
def forward(a, task, key, value, head, score):
    """Out and weights of the receivers of a task. ``key``, ``value``, ``head``: zeros that tell types and widths."""
    rowptr, col, edge_id = ints32(a[ROWPTR]), ints32(a[COL]), ints64(a[EDGE_ID])
    heads, block = a[HEADS], lanes(head)
    key_width, value_width = lanes(key) // block, lanes(value) // block
    scale, slope = doubles(a[CONSTANTS])[SCALE], doubles(a[CONSTANTS])[SLOPE]
    for receiver in range(ints64(a[RUNS])[task], ints64(a[RUNS])[task + 1]):
        begin, end = types.int64(rowptr[receiver]), types.int64(rowptr[receiver + 1])
        for h in range(0, heads, block):
            x, y = h * key_width, h * value_width
            at_query = offset(floats(a[QUERY], key), receiver * a[QUERY_STRIDE] + x)
            prefetch(offset(at_query, ROWS_AHEAD * a[QUERY_STRIDE]), key)
            query = load(at_query, key)
            at_out = offset(floats(a[OUT], value), receiver * heads * value_width + y)
            prefetch(offset(at_out, ROWS_AHEAD * heads * value_width), value)
            by = query * scale if score == DOT else vector_of(a, x, key)
            top = fill(head, -float("inf"))
            for entry in range(begin, end):
                ask_for(a, KEY, KEY_STRIDE, col, entry, x, key)
                at = offset(floats(a[KEY], key), types.int64(col[entry]) * a[KEY_STRIDE] + x)
                seen = with_term(load(at, key), a[KEY_TERM], a[KEY_KIND], edge_id[entry], heads * key_width, x)
                if score != DOT:
                    seen = hidden(query + seen, slope, score)
                logit = with_term(sum_heads(by * seen, head), a[BIAS], a[BIAS_KIND], edge_id[entry], heads, h)
                store(offset(floats(a[WEIGHT], head), entry * heads + h), logit)
                top = where(logit > top, logit, top)
            top = where(top > -float("inf"), top, head)  # 0 where all are -inf; +inf makes NaN, as everywhere
            total, mixed = head, value
            for start in range(begin, end, SEGMENT):
                total_here, mixed_here = head, value
                for entry in range(start, min(start + SEGMENT, end)):
                    place = offset(floats(a[WEIGHT], head), entry * heads + h)
                    weight = load(place, head)
                    weight = exp(weight - top) if a[SOFTMAX] else where(weight < 0.0, head, weight)
                    store(place, weight)
                    ask_for(a, VALUE, VALUE_STRIDE, col, entry, y, value)
                    at = offset(floats(a[VALUE], value), types.int64(col[entry]) * a[VALUE_STRIDE] + y)
                    edge = edge_id[entry]
                    seen = with_term(load(at, value), a[VALUE_TERM], a[VALUE_KIND], edge, heads * value_width, y)
                    total_here = total_here + weight
                    mixed_here = mixed_here + spread(dropped(weight, a, entry * heads + h), value) * seen
                total, mixed = total + total_here, mixed + mixed_here
            if a[SOFTMAX]:
                share = where(total == 0.0, head, fill(head, 1.0) / total)
                mixed = mixed * spread(share, value)
                for entry in range(begin, end):
                    place = offset(floats(a[WEIGHT], head), entry * heads + h)
                    store(place, load(place, head) * share)
            store(at_out, mixed)


@njit(error_model="numpy", forceinline=True)
def backward_receivers(a, task, key, value, head, score):
    """Gradients of logits and queries of a task's receivers, and its share of those of tables, bias and vector."""
    rowptr, col, edge_id = ints32(a[ROWPTR]), ints32(a[COL]), ints64(a[EDGE_ID])
    heads, block = a[HEADS], lanes(head)
    key_width, value_width = lanes(key) // block, lanes(value) // block
    scale, slope = doubles(a[CONSTANTS])[SCALE], doubles(a[CONSTANTS])[SLOPE]
    key_terms = a[GRAD_KEY_TERM] + task * a[GRAD_KEY_TERM_STRIDE]
    value_terms = a[GRAD_VALUE_TERM] + task * a[GRAD_VALUE_TERM_STRIDE]
    biases = a[GRAD_BIAS] + task * a[GRAD_BIAS_STRIDE]
    own_vectors = a[GRAD_VECTOR] + task * a[GRAD_VECTOR_STRIDE]
    for receiver in range(ints64(a[RUNS])[task], ints64(a[RUNS])[task + 1]):
        begin, end = types.int64(rowptr[receiver]), types.int64(rowptr[receiver + 1])
        for h in range(0, heads, block):
            x, y = h * key_width, h * value_width
            at_query = offset(floats(a[QUERY], key), receiver * a[QUERY_STRIDE] + x)
            prefetch(offset(at_query, ROWS_AHEAD * a[QUERY_STRIDE]), key)
            query = load(at_query, key)
            place = receiver * heads * value_width + y
            at_grad = offset(floats(a[GRAD_OUT], value), place)
            prefetch(offset(at_grad, ROWS_AHEAD * heads * value_width), value)
            grad_out = load(at_grad, value)
            at_grad_query = offset(floats(a[GRAD_QUERY], key), receiver * a[GRAD_QUERY_STRIDE] + x)
            prefetch(offset(at_grad_query, ROWS_AHEAD * a[GRAD_QUERY_STRIDE]), key)
            by = query * scale if score == DOT else vector_of(a, x, key)
            mean = head  # of the weights' gradients, by weight: what softmax takes off each
            if a[SOFTMAX]:
                at_out = offset(floats(a[OUT], value), place)
                prefetch(offset(at_out, ROWS_AHEAD * heads * value_width), value)
                mean = sum_heads(grad_out * load(at_out, value), head)
            grad_query, grad_vector = key, key
            for start in range(begin, end, SEGMENT):
                query_here, vector_here = key, key
                for entry in range(start, min(start + SEGMENT, end)):
                    edge, number = edge_id[entry], entry * heads + h
                    weight = load(offset(floats(a[WEIGHT], head), number), head)
                    ask_for(a, VALUE, VALUE_STRIDE, col, entry, y, value)
                    at = offset(floats(a[VALUE], value), types.int64(col[entry]) * a[VALUE_STRIDE] + y)
                    seen = with_term(load(at, value), a[VALUE_TERM], a[VALUE_KIND], edge, heads * value_width, y)
                    grad = dropped(sum_heads(grad_out * seen, head), a, number)
                    grad = weight * (grad - mean) if a[SOFTMAX] else where(weight == 0.0, head, grad)
                    store(offset(floats(a[GRAD_LOGIT], head), number), grad)
                    add_to_term(biases if a[GRAD_BIAS] else 0, a[BIAS_KIND], edge, heads, h, grad)
                    if a[GRAD_VALUE_TERM]:
                        share = spread(dropped(weight, a, number), value) * grad_out
                        add_to_term(value_terms, a[VALUE_KIND], edge, heads * value_width, y, share)
                    ask_for(a, KEY, KEY_STRIDE, col, entry, x, key)
                    at_key = offset(floats(a[KEY], key), types.int64(col[entry]) * a[KEY_STRIDE] + x)
                    seen_key = with_term(load(at_key, key), a[KEY_TERM], a[KEY_KIND], edge, heads * key_width, x)
                    if score == DOT:
                        query_here = query_here + spread(grad, key) * seen_key
                        grad_key = spread(grad, key) * by
                    else:
                        sum_ = query + seen_key
                        active = hidden(sum_, slope, score)
                        vector_here = vector_here + spread(grad, key) * active
                        grad_key = spread(grad, key) * by * slope_of(sum_, active, slope, score)
                        query_here = query_here + grad_key
                    if a[GRAD_KEY_TERM]:
                        add_to_term(key_terms, a[KEY_KIND], edge, heads * key_width, x, grad_key)
                grad_query, grad_vector = grad_query + query_here, grad_vector + vector_here
            if score == DOT:
                grad_query = grad_query * scale
            store(at_grad_query, grad_query)
            if a[GRAD_VECTOR]:
                add_to(offset(floats(own_vectors, key), x), grad_vector)


@njit(error_model="numpy", forceinline=True)
def backward_senders(a, task, key, value, head, score):
    """Gradients of keys and values of a task's senders; rows and entries are those of the transpose."""
    rowptr, col, edge_id, slots = ints32(a[ROWPTR]), ints32(a[COL]), ints64(a[EDGE_ID]), ints64(a[SLOT])
    heads, block = a[HEADS], lanes(head)
    key_width, value_width = lanes(key) // block, lanes(value) // block
    scale, slope = doubles(a[CONSTANTS])[SCALE], doubles(a[CONSTANTS])[SLOPE]
    for sender in range(ints64(a[RUNS])[task], ints64(a[RUNS])[task + 1]):
        begin, end = types.int64(rowptr[sender]), types.int64(rowptr[sender + 1])
        for h in range(0, heads, block):
            x, y = h * key_width, h * value_width
            at_key = offset(floats(a[GRAD_KEY], key), sender * a[GRAD_KEY_STRIDE] + x)
            at_value = offset(floats(a[GRAD_VALUE], value), sender * a[GRAD_VALUE_STRIDE] + y)
            prefetch(offset(at_key, ROWS_AHEAD * a[GRAD_KEY_STRIDE]), key)
            prefetch(offset(at_value, ROWS_AHEAD * a[GRAD_VALUE_STRIDE]), value)
            sent = load(offset(floats(a[KEY], key), sender * a[KEY_STRIDE] + x), key) if score != DOT else key
            by = vector_of(a, x, key) if score != DOT else key
            grad_key, grad_value = key, value
            for start in range(begin, end, SEGMENT):
                key_here, value_here = key, value
                for entry in range(start, min(start + SEGMENT, end)):
                    receiver, number = types.int64(col[entry]), slots[entry] * heads + h
                    ask_for(a, QUERY, QUERY_STRIDE, col, entry, x, key)
                    ask_for(a, GRAD_OUT, GRAD_OUT_STRIDE, col, entry, y, value)
                    grad = spread(load(offset(floats(a[GRAD_LOGIT], head), number), head), key)
                    query = load(offset(floats(a[QUERY], key), receiver * a[QUERY_STRIDE] + x), key)
                    if score == DOT:
                        key_here = key_here + grad * query
                    else:
                        sum_ = query + with_term(sent, a[KEY_TERM], a[KEY_KIND], edge_id[entry], heads * key_width, x)
                        active = hidden(sum_, slope, score) if score == TANH else sum_
                        key_here = key_here + grad * by * slope_of(sum_, active, slope, score)
                    weight = dropped(load(offset(floats(a[WEIGHT], head), number), head), a, number)
                    grad_out = load(offset(floats(a[GRAD_OUT], value), receiver * heads * value_width + y), value)
                    value_here = value_here + spread(weight, value) * grad_out
                grad_key, grad_value = grad_key + key_here, grad_value + value_here
            if score == DOT:
                grad_key = grad_key * scale
            store(at_key, grad_key)
            if a[KEY_IS_VALUE]:
                add_to(at_value, grad_value)
            else:
                store(at_value, grad_value)


def compiled(sweep: int, bits: int, block: int, key_width: int, value_width: int, score: int, *, cache: bool) -> Any:
    """The kernel of a sweep for these constants, as a C function that takes the address of the arguments.

    It draws tasks until none is left, so any number of threads may run it side by side on the same arguments.
    """
    key_lanes, value_lanes, source = block * key_width, block * value_width, SOURCE

    @cfunc(types.void(types.CPointer(types.int64)), cache=cache)
    def run(a):
        _ = source  # a part of the key in Numba's cache: kernels of another source are not these
        key, value, head = zeros(bits, key_lanes), zeros(bits, value_lanes), zeros(bits, block)
        task = take(a)
        while task < a[TASKS]:
            if sweep == FORWARD:
                forward(a, task, key, value, head, score)
            elif sweep == RECEIVERS:
                backward_receivers(a, task, key, value, head, score)
            else:
                backward_senders(a, task, key, value, head, score)
            task = take(a)

    return run
