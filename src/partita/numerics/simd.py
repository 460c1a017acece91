"""Vectors of four numbers for kernels whose rows are padded to a multiple of four.

The compiler's own vectors leave the last numbers of a short row to scalar code, and it keeps sums of rows in memory because
it cannot know that arrays do not overlap. Here `load`, `store`, arithmetic and `exponential` work on four numbers at a time,
and tiles (`add_row`, …) sum rows in registers. Places in arrays are flat: ``row * width + column``.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import make_array

from .math import LN2_HI, LN2_LO, LOG2_E, MAGIC, exact

LANES = 4
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), LANES)
_FUSED = ("contract",)


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name="vector of doubles")


vector = _Vector()


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end_type: Any) -> None:
        super().__init__(manager, front_end_type, _DOUBLES)


def _spread(builder: Any, x: Any) -> Any:
    undefined = ir.Constant(_DOUBLES, ir.Undefined)
    first = builder.insert_element(undefined, x, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _place(builder: Any, data: Any, index: Any, offset: int = 0) -> Any:
    where = builder.gep(data, [builder.add(index, ir.Constant(index.type, offset))])
    return builder.bitcast(where, _DOUBLES.as_pointer())


def _data(context: Any, builder: Any, signature: Any, arguments: Any, i: int) -> Any:
    return make_array(signature.args[i])(context, builder, arguments[i]).data


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Four numbers of a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(builder, _data(context, builder, signature, arguments, 0), arguments[1]), align=8)

    return vector(array, index), generate


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Put four numbers into a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(builder, _data(context, builder, signature, arguments, 0), arguments[1]), align=8)
        return context.get_dummy_value()

    return types.void(array, index, value), generate


@intrinsic
def spread(typing_context: Any, x: Any) -> Any:
    """A number four times."""
    return vector(types.float64), lambda context, builder, signature, arguments: _spread(builder, arguments[0])


def _arithmetic(function: Any, method: str) -> None:
    @type_callable(function)
    def types_of(context: Any) -> Any:
        return lambda a, b: vector if isinstance(a, _Vector) and isinstance(b, _Vector) else None

    @lower_builtin(function, vector, vector)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, method)(*arguments, flags=_FUSED)


for _function, _method in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _arithmetic(_function, _method)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def larger(typing_context: Any, a: Any, b: Any) -> Any:
    """The larger of each pair; that of `b` where one is NaN."""
    return vector(a, b), lambda context, builder, signature, arguments: _larger(builder, *arguments)


def _across(builder: Any, value: Any, combine: Any) -> Any:
    """The combination of the four numbers."""
    parts = [builder.extract_element(value, ir.Constant(ir.IntType(32), k)) for k in range(LANES)]
    return combine(combine(parts[0], parts[1]), combine(parts[2], parts[3]))


@intrinsic
def total(typing_context: Any, value: Any) -> Any:
    """The sum of the four numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _across(builder, arguments[0], builder.fadd)

    return types.float64(value), generate


@intrinsic
def largest(typing_context: Any, value: Any) -> Any:
    """The largest of the four numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _across(builder, arguments[0], lambda a, b: _larger(builder, a, b))

    return types.float64(value), generate


_FACTORIALS = (6227020800.0, 479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0)


@intrinsic
def _exponential(typing_context: Any, value: Any, least: Any) -> Any:
    """As `_math.exp`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def number(x: float) -> Any:
            return ir.Constant(_DOUBLES, [x] * LANES)

        def fused(a: Any, b: Any, c: Any) -> Any:
            return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)

        x, least = arguments[0], _spread(builder, arguments[1])
        counts = builder.fcmp_ordered(">", x, least)
        y = builder.select(counts, x, least)
        shifted = fused(y, number(LOG2_E), number(MAGIC))
        k = builder.fsub(shifted, number(MAGIC))
        r = fused(k, number(-LN2_LO), fused(k, number(-LN2_HI), y))
        p = number(1.0 / _FACTORIALS[0])
        for factorial in _FACTORIALS[1:]:
            p = fused(p, r, number(1.0 / factorial))
        p = fused(builder.fmul(p, r), r, r)
        bits = builder.bitcast(shifted, _INTEGERS)
        bits = builder.add(bits, ir.Constant(_INTEGERS, [1023] * LANES))
        scale = builder.bitcast(builder.shl(bits, ir.Constant(_INTEGERS, [52] * LANES)), _DOUBLES)
        return builder.select(counts, fused(scale, p, scale), number(0.0))

    return vector(value, types.float64), generate


@exact
def exponential(value, least):
    """exp of numbers in (least, 709], zero for others, where least >= -708."""
    return _exponential(value, least)


def _tile(heights: int, most: int, fresh: bool = False, across: bool = False) -> Any:
    """A kernel that sums `heights` rows of up to `most` vectors in registers; `fresh` ones begin at zero.

    Its factors are next to each other, ``step = 1``, or those of a column, `across` rows: ``step = width``.
    """

    @intrinsic
    def add(
        typing_context: Any, M: Any, m: Any, rows: Any, width: Any, x: Any, i: Any, out: Any, o: Any, vectors: Any
    ) -> Any:
        """``out[o + h width + c] += sum_u x[i + h + step u] M[m + u width + c]`` for the first columns c and h < heights."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, m, rows, width, _, i, _, o, vectors = arguments
            matrix, factors, target = (_data(context, builder, signature, arguments, k) for k in (0, 4, 6))
            step = width if across else ir.Constant(width.type, 1)
            done = builder.append_basic_block("done")
            switch = builder.switch(vectors, done)
            for count in range(1, most + 1):
                block = builder.append_basic_block(f"vectors{count}")
                switch.add_case(ir.Constant(vectors.type, count), block)
                builder.position_at_end(block)
                starts = [builder.add(o, builder.mul(width, ir.Constant(width.type, h))) for h in range(heights)]
                places = [_place(builder, target, start, LANES * k) for start in starts for k in range(count)]
                sums = [cgutils.alloca_once(builder, _DOUBLES) for _ in places]
                for where, total in zip(places, sums, strict=True):
                    builder.store(ir.Constant(_DOUBLES, [0.0] * LANES) if fresh else builder.load(where, align=8), total)
                with cgutils.for_range(builder, rows) as loop:
                    start = builder.add(m, builder.mul(loop.index, width))
                    terms = [builder.load(_place(builder, matrix, start, LANES * k), align=8) for k in range(count)]
                    first = builder.add(i, builder.mul(loop.index, step))
                    for h in range(heights):
                        where = builder.gep(factors, [builder.add(first, ir.Constant(first.type, h))])
                        factor = _spread(builder, builder.load(where))
                        for total, term in zip(sums[h * count : (h + 1) * count], terms, strict=True):
                            product = builder.fmul(factor, term, flags=_FUSED)
                            builder.store(builder.fadd(builder.load(total), product, flags=_FUSED), total)
                for where, total in zip(places, sums, strict=True):
                    builder.store(builder.load(total), where, align=8)
                builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(M, m, rows, width, x, i, out, o, vectors), generate

    return add


#: Most vectors in a row of a tile: what fits into sixteen registers.
MOST_ONE, MOST_TWO = 8, 6
set_row = _tile(1, MOST_ONE, fresh=True)
add_row = _tile(1, MOST_ONE)
add_outer_row = _tile(1, MOST_ONE, across=True)
add_two_outer_rows = _tile(2, MOST_TWO, across=True)
