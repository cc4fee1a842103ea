"""Vectors of a fixed number of lanes for Numba: the vocabulary that the kernels are written in.

A ``Vector`` is one value of LLVM's vector type: it lives in registers, whole rows of several heads at once, and LLVM
maps it to whatever the machine has (AVX-512, AVX2, NEON). Nothing here depends on how LLVM would vectorize a loop.
Lanes hold heads one after another: ``H`` heads of width ``D`` are ``H * D`` lanes.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

_INDEX = ir.IntType(32)
_LLVM = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.uint32: ir.IntType(32),
    types.boolean: ir.IntType(1),
}
CACHE_LINE = 64  # bytes
_CONTRACT = ("contract",)  # a * b + c may round once; sums are never reordered, so that results never depend on luck
_LN2 = {  # in two parts, the first with zeros at its end: n * first is exact (Cody and Waite 1980)
    types.float32: (0.693359375, -2.12194440e-4),
    types.float64: (0.693145751953125, 1.42860682030941723212e-6),
}
_LOWEST = {types.float32: -87.0, types.float64: -708.0}
_EXPONENT = {types.float32: (32, 23, 127), types.float64: (64, 52, 1023)}  # bits in all, of the fraction, and the bias


class Vector(types.Type):  # type: ignore[misc]  # Numba has no types
    """The Numba type of a vector: what a lane holds, and how many lanes there are."""

    def __init__(self, scalar: Any, lanes: int) -> None:
        self.scalar, self.lanes = scalar, lanes
        super().__init__(name=f"Vector({scalar}, {lanes})")

    @property
    def key(self) -> tuple[Any, int]:
        """What makes two vector types one."""
        return self.scalar, self.lanes

    def llvm(self) -> ir.VectorType:
        """The type in LLVM."""
        return ir.VectorType(_LLVM[self.scalar], self.lanes)

    def constant(self, number: float) -> ir.Constant:
        """The number in every lane."""
        return ir.Constant(self.llvm(), [number] * self.lanes)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, kind.llvm())


@intrinsic(prefer_literal=True)
def zeros(typing, bits, lanes):
    """A vector of zeros of ``float32`` or ``float64``; both arguments are constants of the program."""
    kind = Vector({32: types.float32, 64: types.float64}[bits.literal_value], lanes.literal_value)
    return kind(bits, lanes), lambda context, builder, signature, args: kind.constant(0)


@intrinsic
def lanes(typing, vector):
    """How many lanes a vector has."""
    return types.int64(vector), lambda context, builder, signature, args: ir.Constant(ir.IntType(64), vector.lanes)


@intrinsic
def fill(typing, like, number):
    """``number`` in every lane of a vector like ``like``."""

    def generate(context, builder, signature, args):
        scalar = context.cast(builder, args[1], number, like.scalar)
        one = builder.insert_element(ir.Constant(like.llvm(), ir.Undefined), scalar, ir.Constant(_INDEX, 0))
        return _shuffle(builder, one, [0] * like.lanes)

    return like(like, number), generate


@intrinsic
def where(typing, condition, yes, no):
    """Lane by lane ``yes`` or ``no``."""
    return yes(condition, yes, no), lambda context, builder, signature, args: builder.select(*args)


@intrinsic
def load(typing, pointer, like):
    """As many numbers as ``like`` has lanes."""

    def generate(context, builder, signature, args):
        place = builder.bitcast(args[0], like.llvm().as_pointer())
        return builder.load(place, align=like.scalar.bitwidth // 8)

    return like(pointer, like), generate


@intrinsic
def store(typing, pointer, vector):
    """Write all lanes."""

    def generate(context, builder, signature, args):
        place = builder.bitcast(args[0], vector.llvm().as_pointer())
        builder.store(args[1], place, align=vector.scalar.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(pointer, vector), generate


@intrinsic
def prefetch(typing, pointer, like):
    """Ask for the memory that ``load(pointer, like)`` will read; the address need not be valid."""
    size = like.lanes * like.scalar.bitwidth // 8

    def generate(context, builder, signature, args):
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        first = builder.bitcast(args[0], byte)
        for line in range(0, size, CACHE_LINE):
            place = builder.gep(first, [ir.Constant(ir.IntType(64), line)])
            builder.call(ask, [place, *(ir.Constant(flag, number) for number in (0, 3, 1))])  # read, keep, data
        return context.get_dummy_value()

    return types.void(pointer, like), generate


@intrinsic
def offset(typing, pointer, count):
    """The pointer ``count`` elements on."""
    return pointer(pointer, types.int64), lambda context, builder, signature, args: builder.gep(args[0], [args[1]])


@intrinsic
def floats(typing, address, like):
    """A pointer to numbers such as ``like`` holds."""
    pointer = types.CPointer(like.scalar)
    return pointer(types.int64, like), _from_address


@intrinsic
def doubles(typing, address):
    """A pointer to ``float64``."""
    return types.CPointer(types.float64)(types.int64), _from_address


@intrinsic
def ints32(typing, address):
    """A pointer to ``int32``."""
    return types.CPointer(types.int32)(types.int64), _from_address


@intrinsic
def ints64(typing, address):
    """A pointer to ``int64``."""
    return types.CPointer(types.int64)(types.int64), _from_address


def _from_address(context, builder, signature, args):
    return builder.inttoptr(args[0], context.get_value_type(signature.return_type))


@intrinsic
def take(typing, counter):
    """The number at ``counter``, which grows by 1: no two threads get the same one."""

    def generate(context, builder, signature, args):
        return builder.atomic_rmw("add", args[0], ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(types.CPointer(types.int64)), generate


@intrinsic
def sum_heads(typing, vector, like):
    """The sum over the lanes of each head, one lane for each of ``like``; halves are added until one lane is left."""
    heads, result = like.lanes, Vector(vector.scalar, like.lanes)

    def generate(context, builder, signature, args):
        left, width = args[0], vector.lanes // heads
        while width > 1:
            width //= 2
            first, second = (
                _shuffle(
                    builder,
                    left,
                    [2 * width * head + half * width + lane for head in range(heads) for lane in range(width)],
                )
                for half in (0, 1)
            )
            left = builder.fadd(first, second)
        return left

    return result(vector, like), generate


@intrinsic
def spread(typing, vector, like):
    """The number of each head in all lanes of that head; as many lanes as ``like`` has."""
    width = like.lanes // vector.lanes

    def generate(context, builder, signature, args):
        return _shuffle(builder, args[0], [head for head in range(vector.lanes) for _ in range(width)])

    return like(vector, like), generate


@intrinsic
def counting(typing, first, like):
    """``first``, ``first + 1``, ... modulo 2**32, one lane for each of ``like``."""
    result = Vector(types.uint32, like.lanes)

    def generate(context, builder, signature, args):
        start = builder.trunc(args[0], _INDEX)
        one = builder.insert_element(ir.Constant(result.llvm(), ir.Undefined), start, ir.Constant(_INDEX, 0))
        steps = ir.Constant(result.llvm(), list(range(result.lanes)))
        return builder.add(_shuffle(builder, one, [0] * result.lanes), steps)

    return result(types.int64, like), generate


@intrinsic
def _floor(typing, vector):
    def generate(context, builder, signature, args):
        kind = vector.llvm()
        name = f"llvm.floor.v{vector.lanes}f{vector.scalar.bitwidth}"
        return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name), args)

    return vector(vector), generate


@intrinsic
def _power_of_2(typing, vector):
    """2 to the power of whole numbers: they become exponents."""
    bits, fraction, bias = _EXPONENT[vector.scalar]

    def generate(context, builder, signature, args):
        whole = ir.VectorType(ir.IntType(bits), vector.lanes)
        exponent = builder.add(builder.fptosi(args[0], whole), ir.Constant(whole, [bias] * vector.lanes))
        return builder.bitcast(builder.shl(exponent, ir.Constant(whole, [fraction] * vector.lanes)), vector.llvm())

    return vector(vector), generate


@intrinsic
def _lowest(typing, vector):
    """Where e**x falls below the smallest normal number of the type."""
    return vector(vector), lambda context, builder, signature, args: vector.constant(_LOWEST[vector.scalar])


@intrinsic
def _ln2(typing, vector, part):
    parts = _LN2[vector.scalar]

    def generate(context, builder, signature, args):
        return builder.select(args[1], vector.constant(parts[0]), vector.constant(parts[1]))

    return vector(vector, types.boolean), generate


@intrinsic
def _polynomial(typing, x):
    """X + x**2/2! + x**3/3! + ..., for |x| below 0.35 as exact as the type: 8 terms, or 14 in float64."""
    terms = 8 if x.scalar == types.float32 else 14

    def generate(context, builder, signature, args):
        total = x.constant(1 / math.factorial(terms))
        for power in range(terms - 1, 0, -1):
            product = builder.fmul(total, args[0], flags=_CONTRACT)
            total = builder.fadd(product, x.constant(1 / math.factorial(power)), flags=_CONTRACT)
        return builder.fmul(total, args[0])

    return x(x), generate


@njit(forceinline=True)
def _parts(x, lowest, highest):
    """e**x - 1 = 2**n (1 + part) - 1: the two factors ``2**n`` and ``part``, for x cut to [lowest, highest]."""
    x = where(x > lowest, x, lowest)
    x = where(x < highest, x, fill(x, highest))
    n = _floor(x * 1.4426950408889634 + 0.5)  # 1 / ln 2
    rest = (x - n * _ln2(x, True)) - n * _ln2(x, False)
    return _power_of_2(n), _polynomial(rest)


@njit(forceinline=True)
def exp(x):
    """e**x for x <= 0 or a little above; 0 where that is below the smallest normal number, NaN where x is."""
    lowest = _lowest(x)
    power, part = _parts(x, lowest, 88.0)
    return where(x == x, where(x < lowest, fill(x, 0.0), power * part + power), x)  # noqa: PLR0124 (not so for NaN)


@njit(forceinline=True)
def tanh(x):
    """Hyperbolic tangent, exact to a few units in the last place, also near 0."""
    size = where(x < 0.0, fill(x, 0.0) - x, x)
    power, part = _parts(size + size, fill(x, 0.0), 40.0)
    less_one = power * part + (power - 1.0)  # e**2|x| - 1
    result = less_one / (less_one + 2.0)
    result = where(x < 0.0, fill(x, 0.0) - result, result)
    return where(x == x, result, x)  # noqa: PLR0124


def _shuffle(builder: Any, vector: Any, order: Sequence[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INDEX, len(order)), list(order))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def _lane_by_lane(operation: Any, build: Callable[[Any, Any, Any, bool], Any], *, compares: bool = False) -> None:
    """Let Numba apply an operator to two vectors, or to a vector and a number."""

    @intrinsic
    def of_vectors(typing, left, right):
        result = Vector(types.boolean, left.lanes) if compares else left

        def generate(context, builder, signature, args):
            return build(builder, *args, left.scalar == types.uint32)

        return result(left, right), generate

    @intrinsic
    def of_number(typing, left, right):
        result = Vector(types.boolean, left.lanes) if compares else left

        def generate(context, builder, signature, args):
            number = context.cast(builder, args[1], right, left.scalar)
            one = builder.insert_element(ir.Constant(left.llvm(), ir.Undefined), number, ir.Constant(_INDEX, 0))
            return build(builder, args[0], _shuffle(builder, one, [0] * left.lanes), left.scalar == types.uint32)

        return result(left, right), generate

    @overload(operation, inline="always")
    def choose(left, right):
        if isinstance(left, Vector) and left == right:
            return lambda left, right: of_vectors(left, right)
        if isinstance(left, Vector) and isinstance(right, types.Number):
            return lambda left, right: of_number(left, right)
        return None


_lane_by_lane(operator.add, lambda builder, a, b, whole: builder.fadd(a, b, flags=_CONTRACT))
_lane_by_lane(operator.sub, lambda builder, a, b, whole: builder.fsub(a, b, flags=_CONTRACT))
_lane_by_lane(
    operator.mul, lambda builder, a, b, whole: builder.mul(a, b) if whole else builder.fmul(a, b, flags=_CONTRACT)
)
_lane_by_lane(operator.truediv, lambda builder, a, b, whole: builder.fdiv(a, b))
_lane_by_lane(operator.xor, lambda builder, a, b, whole: builder.xor(a, b))
_lane_by_lane(operator.rshift, lambda builder, a, b, whole: builder.lshr(a, b))
_lane_by_lane(
    operator.lt,
    lambda builder, a, b, whole: builder.icmp_unsigned("<", a, b) if whole else builder.fcmp_ordered("<", a, b),
    compares=True,
)
_lane_by_lane(operator.gt, lambda builder, a, b, whole: builder.fcmp_ordered(">", a, b), compares=True)
_lane_by_lane(operator.eq, lambda builder, a, b, whole: builder.fcmp_ordered("==", a, b), compares=True)
