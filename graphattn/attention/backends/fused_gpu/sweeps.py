"""The sweeps of one call: which arguments the Triton kernels get, how the work is cut, what the gradients are."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphattn.adjacency import Adjacency
from graphattn.attention.backends.fused_gpu import kernels
from graphattn.attention.backends.plan import Inputs, Plan
from graphattn.attention.call import drop_below
from graphattn.attention.scores import Additive

ROW_BLOCK = 256  # channels of a row that one program takes; more heads than fit are shared over programs
ENTRY_BLOCK = 4  # entries that it takes at a time: most atoms have no more, so they wait for memory once
TILE = 1024  # numbers in its largest tile of entries x heads x channels; the widest heads take one entry at a time
WARP_SHARE = 256  # of those numbers for a warp, 8 in each lane
GROUP_PARTS = 1024  # programs that share what many rows add to; how they share it follows from sizes only
PART_ENTRIES = 64  # and none takes less than this


class Sweeps:
    """The arguments that the kernels share, for one call."""

    def __init__(self, plan: Plan, inputs: Inputs) -> None:
        query, key, value, key_term, value_term, bias, vector = inputs
        self.plan, adjacency, score = plan, plan.adjacency, plan.score
        self.query, self.key = _in_rows(query), _in_rows(key)
        self.tied = value is None
        self.value = self.key if value is None else _in_rows(value)
        self.key_term, self.value_term, self.bias, self.vector = (
            None if each is None else each.contiguous() for each in (key_term, value_term, bias, vector)
        )
        self.dtype = torch.promote_types(query.dtype, torch.float32)
        self.heads, self.key_width, self.value_width = query.shape[1], query.shape[2], self.value.shape[2]
        self.rows = {"rowptr": adjacency.rowptr, "col": adjacency.col, "edge_id": adjacency.edge_id}
        self.query_rows, self.key_rows = _strided("query", self.query), _strided("key", self.key)
        self.value_rows = _strided("value", self.value)
        self.key_terms = {"key_term": self.key_term, "key_kind": plan.key_kind}
        self.terms = {
            **self.key_terms,
            "value_term": self.key_term if plan.one_term else self.value_term,
            "value_kind": plan.value_kind,
        }
        self.score = {
            "score": score.activation if isinstance(score, Additive) else "dot",
            "slope": score.negative_slope if isinstance(score, Additive) else 0.0,
        }
        self.scale = 1.0 if isinstance(score, Additive) else score.factor(self.key_width)
        key_block, value_block = _filled(self.key_width), _filled(self.value_width)
        widest = max(key_block, value_block)
        self.head_block = min(_filled(self.heads), max(1, ROW_BLOCK // widest))
        self.entry_block = max(1, min(ENTRY_BLOCK, TILE // (self.head_block * widest)))
        self.warps = min(8, max(1, self.entry_block * self.head_block * widest // WARP_SHARE))
        self.sizes = {
            "head_count": self.heads,
            "key_width": self.key_width,
            "value_width": self.value_width,
            "entry_block": self.entry_block,
            "head_block": self.head_block,
            "key_block": key_block,
            "value_block": value_block,
        }
        self.normalizer = {
            "softmax": plan.normalizer == "softmax",
            "drop_below": drop_below(plan.dropout),
            "kept": 1 / (1 - plan.dropout),
        }

    def launch(self, kernel: Any, grid: tuple[int, ...], **arguments: Any) -> None:
        """Run a kernel on the query's device, unless there is nothing to do."""
        if min(grid) > 0:
            with torch.cuda.device_of(self.query):  # type: ignore[no-untyped-call]
                kernel[grid](**arguments, num_warps=self.warps)

    def head_blocks(self) -> int:
        """Programs that share the heads of a row."""
        return -(-self.heads // self.head_block)

    def forward(self) -> tuple[Tensor, ...]:
        """Out (R, H, Dv), logits (entries, H), and of each row (R, H) the base and share of its softmax."""
        receivers, query = len(self.query), self.query
        out = query.new_empty(receivers, self.heads, self.value_width, dtype=self.dtype)
        logit = out.new_empty(self.plan.adjacency.num_entries, self.heads)
        top, share = out.new_empty(2, receivers, self.heads).unbind()
        self.launch(
            kernels.forward,
            (receivers, self.head_blocks()),
            **self.rows,
            **self.query_rows,
            **self.key_rows,
            **self.value_rows,
            **self.terms,
            bias=self.bias,
            bias_kind=self.plan.bias_kind,
            vector=self.vector,
            seed=self.plan.seed,
            out=out,
            logit=logit,
            top=top,
            share=share,
            **self.sizes,
            **self.score,
            **self.normalizer,
            scale=self.scale,
        )
        return out, logit, top, share

    def backward(
        self, grad_out: Tensor, results: Sequence[Tensor], wanted: Sequence[bool]
    ) -> tuple[Tensor | None, ...]:
        """Gradients of the inputs, in their order."""
        plan, adjacency = self.plan, self.plan.adjacency
        out, logit, top, share = results
        weight_kept, grad_logit = torch.empty_like(logit), torch.empty_like(logit)
        grad_query, grad_key = _empty_like(self.query), _empty_like(self.key)
        grad_value = None if self.tied else _empty_like(self.value)
        own = [
            torch.zeros_like(table) if table is not None and is_wanted and kind is None else None
            for table, is_wanted, kind in (
                (self.key_term, wanted[3], plan.key_kind),
                (self.value_term, wanted[4], plan.value_kind),
                (self.bias, wanted[5], plan.bias_kind),
            )
        ]
        self.launch(
            kernels.backward_receivers,
            (len(self.query), self.head_blocks()),
            **self.rows,
            **self.query_rows,
            **self.key_rows,
            **self.value_rows,
            **self.terms,
            vector=self.vector,
            seed=plan.seed,
            out=out,
            logit=logit,
            top=top,
            share=share,
            grad_out=grad_out,
            weight_kept=weight_kept,
            grad_logit=grad_logit,
            grad_query=grad_query,
            grad_key_term=own[0],
            grad_value_term=own[1],
            grad_bias=own[2],
            one_term=plan.one_term,
            **self.sizes,
            **self.score,
            **self.normalizer,
            scale=self.scale,
        )
        if any(wanted[1:3]):
            transpose = adjacency.transpose
            self.launch(
                kernels.backward_senders,
                (len(self.key), self.head_blocks()),
                rowptr=transpose.rowptr,
                col=transpose.col,
                edge_id=transpose.edge_id,
                slots=adjacency.transpose_slots,
                **self.query_rows,
                **self.key_rows,
                **self.key_terms,
                vector=self.vector,
                grad_out=grad_out,
                weight_kept=weight_kept,
                grad_logit=grad_logit,
                grad_key=grad_key,
                grad_value=grad_value,
                **self.sizes,
                **self.score,
                scale=self.scale,
            )
        shared = self.shared_gradients(grad_out, weight_kept, grad_logit, wanted)
        terms = [mine if mine is not None else summed for mine, summed in zip([*own, None], shared, strict=True)]
        return grad_query, grad_key, grad_value, *terms

    def shared_gradients(
        self, grad_out: Tensor, weight_kept: Tensor, grad_logit: Tensor, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """Gradients of what many rows add to: tables by kind of edge, and the score's vector; else ``None``."""
        plan, totals = self.plan, list[Tensor | None]((None,) * 4)
        additive = isinstance(plan.score, Additive)
        groups = _Groups(plan.adjacency)
        if self.key_term is not None and wanted[3] and plan.key_kind is not None:
            by_kind = groups.of(plan.key_kind, len(self.key_term))
            total = self.sum_by_group(by_kind, grad_logit, self.query, what="slope" if additive else "rows")
            if additive and self.vector is not None:
                total = total * self.vector.to(total.dtype)
            total = total * self.scale
            if plan.one_term:
                total = total + self.sum_by_group(by_kind, weight_kept, grad_out)
            totals[0] = total.to(self.key_term.dtype)
        if self.value_term is not None and wanted[4] and plan.value_kind is not None:
            by_kind = groups.of(plan.value_kind, len(self.value_term))
            totals[1] = self.sum_by_group(by_kind, weight_kept, grad_out).to(self.value_term.dtype)
        if self.bias is not None and wanted[5] and plan.bias_kind is not None:
            by_kind = groups.of(plan.bias_kind, len(self.bias))
            ones = grad_out.new_ones(1, 1, 1).expand(len(self.query), self.heads, 1)
            totals[2] = self.sum_by_group(by_kind, grad_logit, ones)[..., 0].to(self.bias.dtype)
        if self.vector is not None and wanted[6]:
            totals[3] = self.sum_by_group(groups.whole(), grad_logit, self.query, what="hidden")[0].to(
                self.vector.dtype
            )
        return totals

    def sum_by_group(
        self, groups: tuple[Tensor, Tensor | None], number: Tensor, rows: Tensor, what: str = "rows"
    ) -> Tensor:
        """(groups, H, width) sums over the entries of each group of a number (entries, H) times a vector."""
        adjacency, (group_ptr, order), width = self.plan.adjacency, groups, rows.shape[-1]
        count, entries = len(group_ptr) - 1, adjacency.num_entries
        parts = max(1, min(GROUP_PARTS // max(1, count), -(-entries // PART_ENTRIES)))
        total = number.new_empty(count, parts, self.heads, width)
        self.launch(
            kernels.sum_by_group,
            (count, parts, self.head_blocks()),
            group_ptr=group_ptr,
            order=order,
            receiver_of=adjacency.receiver,
            sender_of=adjacency.sender,
            edge_id=adjacency.edge_id,
            number=number,
            **_strided("rows", rows),
            **self.key_rows,
            **self.key_terms,
            total=total,
            parts=parts,
            what=what,
            head_count=self.heads,
            width=width,
            entry_block=self.entry_block,
            head_block=self.head_block,
            block=_filled(width),
            **self.score,
        )
        return total.sum(1)


class _Groups:
    """Entries by the kind of their edge, sorted once where several tables go by the same kinds."""

    def __init__(self, adjacency: Adjacency) -> None:
        self.adjacency = adjacency
        self.sorted: dict[tuple[int, int], tuple[Tensor, Tensor | None]] = {}

    def of(self, kind: Tensor, count: int) -> tuple[Tensor, Tensor | None]:
        """Where each kind begins, (kinds + 1,), in the order of entries that sorts them; added self loops come last."""
        name = id(kind), count
        if name not in self.sorted:
            edge_id, added = self.adjacency.edge_id, self.adjacency.added
            if added is None:
                kinds = kind[edge_id].long()
            elif len(kind) == 0:  # only added loops
                kinds = torch.full_like(edge_id, count)
            else:
                kinds = kind[edge_id.clamp(min=0)].long().masked_fill(added, count)
            kinds, order = torch.sort(kinds, stable=True)
            bounds = torch.searchsorted(kinds, torch.arange(count + 1, device=kinds.device))
            self.sorted[name] = bounds, order
        return self.sorted[name]

    def whole(self) -> tuple[Tensor, Tensor | None]:
        """One group of all entries."""
        entries = self.adjacency.num_entries
        return torch.arange(2, device=self.adjacency.col.device) * entries, None


def _filled(width: int) -> int:
    """The next power of two: what Triton's tiles are made of."""
    return 1 << (width - 1).bit_length()


def _in_rows(tensor: Tensor) -> Tensor:
    """The tensor itself if a head's numbers lie side by side, else a copy in which they do."""
    return tensor if tensor.shape[2] == 1 or tensor.stride(2) == 1 else tensor.contiguous()


def _strided(name: str, rows: Tensor) -> dict[str, Any]:
    return {name: rows, f"{name}_row": rows.stride(0), f"{name}_head": rows.stride(1)}


def _empty_like(tensor: Tensor) -> Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
