"""Hamming distances from many queries at once: bits are added up by logic, 512 items at a time.

The items of 8 blocks are *sliced*: a slice is one bit of 512 codes, a vector of 8 words. A full
adder turns three bits of the same weight into their parity and a carry of twice the weight. Of
three bits that differ or not from a query's, the parity is that of the items' bits or its opposite,
and the carry is one of only eight. So both are worked out once for all queries: three slices leave
a queue, their parity joins its end, and the eight carries go into a table. With a slice of zeros to
make their number odd, k slices end as k/2 carries and one parity:

    distance = parity + 2 (sum of the carries that the query chooses).

What is left for a query is to add k/2 slices, by full adders again: two instructions each, where
there is one for all logic of three (AVX-512). Counting the bits of k bytes takes 3 k. A sum does
not start at zero, but so that it overflows where a distance is not below the limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel, part
from streamhash.kernels.hamming.planes import ITEMS_PER_BLOCK, Planes

Words = NDArray[np.uint64]
Whole = int | np.int64

BLOCKS_PER_SLICE = 8  # words of a vector
N_DIGITS = 9  # binary digits of a sum
LONGEST_SLICED = 64  # bytes of a code; those of longer ones could make more than 9 digits
# Adding bits up takes about as long as counting so many of them, in sixteenths. Zen counts
# fast, and Zen 4 halves vectors of 512 bits for logic; other processors that have them do neither.
_IS_ZEN = get_host_cpu_name().startswith("znver")
COST = 9 if _IS_ZEN or not get_host_cpu_features().get("avx512f", False) else 5
_CHOICES = 8  # carries of three bits: one for each way in which a query's may be
_SLICE_BYTES = BLOCKS_PER_SLICE * ITEMS_PER_BLOCK // 8
_RUNS = (64, 32, 4)  # slices that are added before the digits above theirs are touched

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_SLICE = ir.VectorType(_I64, BLOCKS_PER_SLICE)
_Load = Callable[[int], Any]  # the i-th slice


class Choices(NamedTuple):
    """Which carries a query adds up, as places in bytes, and the parity of its bits."""

    carries: NDArray[np.uint16]  # (n, n_bits / 2)
    parity: NDArray[np.uint64]  # (n,) no bit is set, or all are


@kernel
def as_choices(codes: Codes) -> Choices:
    """Make what the loop reads of the codes (n, bytes) that are looked for."""
    n, n_bits = len(codes), 8 * codes.shape[1]
    carries, parity = np.empty((n, n_bits // 2), np.uint16), np.empty(n, np.uint64)
    queue = np.zeros(n_bits // 2 * 3 + 1, np.uint8)
    for q in range(n):
        for i in range(n_bits):
            queue[i] = (codes[q, i // 8] >> (i % 8)) & 1
        for i in range(n_bits // 2):
            one, two, three = queue[3 * i], queue[3 * i + 1], queue[3 * i + 2]
            carries[q, i] = _SLICE_BYTES * (one + 2 * two + 4 * three)
            queue[n_bits + 1 + i] = one ^ two ^ three
        parity[q] = np.uint64(0) - np.uint64(queue[-1])
    return Choices(carries, parity)


@part
def new_table(n_bytes: int) -> Words:
    """Room for the carries of 512 items (n_bits / 2, 8, 8), each a line of the cache."""
    size = 4 * n_bytes * _CHOICES * BLOCKS_PER_SLICE
    room = np.empty(size + BLOCKS_PER_SLICE, np.uint64)
    start = -(room.ctypes.data // 8) % BLOCKS_PER_SLICE
    return room[start : start + size].reshape((4 * n_bytes, _CHOICES, BLOCKS_PER_SLICE))


@part
def new_queue(n_bytes: int) -> Words:
    """Room for slices, those of the codes first; the last is the parity of all."""
    return np.zeros((12 * n_bytes + 1, BLOCKS_PER_SLICE), np.uint64)


@kernel
def put_carries(
    planes: Planes, block: Whole, end: Whole, stride: Whole, queue: Words, table: Words
) -> None:
    """Slice every ``stride``-th block, 8 or those before ``end``: their carries for any query."""
    n_bits = 8 * planes.shape[1]
    end = min(end, block + BLOCKS_PER_SLICE * stride)
    for w, each in enumerate(range(block, end, stride)):
        for byte in range(planes.shape[1]):
            _put_bits(planes, each, byte, queue, w)
    for i in range(n_bits // 2):
        _reduce(queue, 3 * i, n_bits + 1 + i, table, i)


@part
def first_sum(limit: Whole) -> int:
    """Where a sum starts that overflows if it is (limit + 1) // 2 or more: distances above it."""
    return (1 << N_DIGITS) - (int(limit) + 1) // 2


@part
def are_nearer(sums: Words, w: Whole, parity: np.uint64, limit: Whole) -> np.uint64:
    """Which of the 64 items of block ``w`` are nearer than the limit, as bits."""
    mask: np.uint64 = ~sums[N_DIGITS, w]
    if mask != 0 and limit % 2 == 1:  # the farthest of them may be as far as the limit itself
        farthest = parity
        for digit in range(N_DIGITS):
            farthest &= sums[digit, w]
        mask &= ~farthest
    return mask


@part
def distance_of(sums: Words, w: Whole, parity: np.uint64, place: Whole, limit: Whole) -> np.int64:
    """Read the distance of one of the items of block ``w``."""
    total, shift = np.int64(0), np.uint64(place)
    for digit in range(N_DIGITS):
        total += np.int64((sums[digit, w] >> shift) & np.uint64(1)) << digit
    return 2 * (total - first_sum(limit)) + np.int64((parity >> shift) & np.uint64(1))


def plain_sums(
    table: Words, choices: NDArray[np.uint16], start: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Sums of the carries of one query (512,), and which of them overflow."""
    chosen = table[np.arange(len(table)), choices // _SLICE_BYTES]  # (n_bits / 2, 8)
    little = np.ascontiguousarray(chosen).astype("<u8").view(np.uint8)
    sums = start + np.unpackbits(little, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    return sums, sums >= 1 << N_DIGITS


# -------------------------------------------------------------------------------- what is emitted


class _Adder:
    """The code that adds up slices: a variable for each digit of 512 sums, and which overflow."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.builder = builder
        features = context.codegen().magic_tuple()[-1].split(",")
        self.has_logic_of_three = "+avx512f" in features
        self.digits = [cgutils.alloca_once(builder, _SLICE) for _ in range(N_DIGITS)]  # type: ignore[no-untyped-call]
        self.overflow = cgutils.alloca_once(builder, _SLICE)  # type: ignore[no-untyped-call]

    def begin(self, start: Any) -> None:
        """Set all sums to a number, which may overflow."""
        builder, nothing = self.builder, ir.Constant(_SLICE, ir.Undefined)
        first = ir.Constant(ir.VectorType(_I32, BLOCKS_PER_SLICE), [0] * BLOCKS_PER_SLICE)
        for i, variable in enumerate([*self.digits, self.overflow]):
            bit = builder.and_(builder.lshr(start, _I64(i)), _I64(1))
            bits = builder.insert_element(nothing, builder.sub(_I64(0), bit), _I32(0))
            builder.store(builder.shuffle_vector(bits, nothing, first), variable)

    def add(self, load: _Load, n: int) -> None:
        """Add ``n`` slices, a power of two, each of which ``load`` gets."""
        builder = self.builder
        carry, i = self._add_to_low_digits(load, 0, n)
        for digit in self.digits[i:]:
            value = builder.load(digit)
            builder.store(builder.xor(value, carry), digit)
            carry = builder.and_(value, carry)
        builder.store(builder.or_(builder.load(self.overflow), carry), self.overflow)

    def _add_to_low_digits(self, load: _Load, first: int, n: int) -> tuple[Any, int]:
        """Add slices as far as their number goes; what is carried, and to which digit."""
        if n == 1:
            return load(first), 0
        one, i = self._add_to_low_digits(load, first, n // 2)
        two, _ = self._add_to_low_digits(load, first + n // 2, n // 2)
        return self._full_adder(self.digits[i], one, two), i + 1

    def _full_adder(self, digit: Any, one: Any, two: Any) -> Any:
        """Add two bits to a digit; returns the carry."""
        builder, value = self.builder, self.builder.load(digit)
        if self.has_logic_of_three:
            logic = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module,
                ir.FunctionType(_SLICE, [_SLICE] * 3 + [_I32]),
                "llvm.x86.avx512.pternlog.q.512",
            )
            parity = builder.call(logic, [value, one, two, _I32(0b10010110)])
            # Two equal bits are the carry themselves; else the digit was one if it is zero now.
            carry = builder.call(logic, [one, two, parity, _I32(0b11010100)])
        else:
            differ = builder.xor(one, two)
            parity = builder.xor(differ, value)
            carry = builder.or_(builder.and_(one, two), builder.and_(differ, value))
        builder.store(parity, digit)
        return carry


def _data(context: Any, builder: Any, signature: Any, arguments: Any, i: int) -> Any:
    """Where the numbers of an array begin that is an argument."""
    proxy = cgutils.create_struct_proxy(signature.args[i])  # type: ignore[no-untyped-call]
    return proxy(context, builder, value=arguments[i]).data


def _length(context: Any, builder: Any, signature: Any, arguments: Any, i: int) -> Any:
    """The second size of an array that is an argument."""
    proxy = cgutils.create_struct_proxy(signature.args[i])  # type: ignore[no-untyped-call]
    shape = proxy(context, builder, value=arguments[i]).shape
    return cgutils.unpack_tuple(builder, shape, signature.args[i].ndim)[1]  # type: ignore[no-untyped-call]


def _emit_add(_: Any, table: Any, carries: Any, q: Any, start: Any, sums: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, carries, sums = (_data(context, builder, signature, arguments, i) for i in (0, 1, 4))
        n = _length(context, builder, signature, arguments, 1)
        rows = builder.bitcast(table, ir.IntType(8).as_pointer())
        chosen = builder.gep(carries, [builder.mul(arguments[2], n)])
        adder = _Adder(context, builder)
        adder.begin(arguments[3])

        def add_runs(start: Any, stop: Any, size: int) -> None:
            with cgutils.for_range_slice(builder, start, stop, _I64(size), inc=True) as (first, _):
                row = builder.gep(rows, [builder.mul(first, _I64(_CHOICES * _SLICE_BYTES))])
                places = builder.gep(chosen, [first])

                def load(i: int) -> Any:
                    place = builder.zext(builder.load(builder.gep(places, [_I64(i)])), _I64)
                    place = builder.add(place, _I64(i * _CHOICES * _SLICE_BYTES))
                    at = builder.bitcast(builder.gep(row, [place]), _SLICE.as_pointer())
                    value = builder.load(at)
                    value.align = _SLICE_BYTES
                    return value

                adder.add(load, size)

        begin: Any = _I64(0)
        for size in _RUNS:
            end = builder.and_(n, _I64(-size))
            add_runs(begin, end, size)
            begin = end
        all_far = ir.Constant(_SLICE, [-1] * BLOCKS_PER_SLICE)
        near = builder.icmp_unsigned("!=", builder.load(adder.overflow), all_far)
        near = builder.zext(builder.bitcast(near, ir.IntType(BLOCKS_PER_SLICE)), _I64)
        with builder.if_then(builder.icmp_unsigned("!=", near, _I64(0)), likely=False):
            out = builder.bitcast(sums, _SLICE.as_pointer())
            for i, variable in enumerate([*adder.digits, adder.overflow]):
                builder.store(builder.load(variable), builder.gep(out, [_I64(i)])).align = 8
        return near

    n = types.int64
    return types.uint64(table, carries, n, n, sums), generate


def _emit_put_bits(_: Any, planes: Any, block: Any, byte: Any, queue: Any, w: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        planes, queue = (_data(context, builder, signature, arguments, i) for i in (0, 3))
        n_bytes = _length(context, builder, signature, arguments, 0)
        plane = builder.add(builder.mul(arguments[1], n_bytes), arguments[2])
        kind = ir.VectorType(ir.IntType(8), ITEMS_PER_BLOCK)
        at = builder.gep(planes, [builder.mul(plane, _I64(ITEMS_PER_BLOCK))])
        items = builder.load(builder.bitcast(at, kind.as_pointer()))
        items.align = 1
        first = builder.mul(arguments[2], _I64(8 * BLOCKS_PER_SLICE))
        out = builder.gep(queue, [builder.add(first, arguments[4])])
        for bit in range(8):
            bits = builder.and_(items, ir.Constant(kind, [1 << bit] * ITEMS_PER_BLOCK))
            is_set = builder.icmp_unsigned("!=", bits, ir.Constant(kind, [0] * ITEMS_PER_BLOCK))
            place = builder.gep(out, [_I64(bit * BLOCKS_PER_SLICE)])
            builder.store(builder.bitcast(is_set, _I64), place)
        return context.get_dummy_value()

    n = types.int64
    return types.void(planes, n, n, queue, n), generate


def _emit_reduce(_: Any, queue: Any, first: Any, end: Any, table: Any, i: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        queue, table = (
            builder.bitcast(_data(context, builder, signature, arguments, i), _SLICE.as_pointer())
            for i in (0, 3)
        )
        at = builder.gep(queue, [arguments[1]])
        bits = [builder.load(builder.gep(at, [_I64(j)])) for j in range(3)]
        for slice_ in bits:
            slice_.align = 8
        parity = builder.xor(builder.xor(bits[0], bits[1]), bits[2])
        builder.store(parity, builder.gep(queue, [arguments[2]])).align = 8
        row = builder.gep(table, [builder.mul(arguments[4], _I64(_CHOICES))])
        for choice in range(_CHOICES // 2):  # with all three bits turned round, the opposite
            one, two, three = (
                builder.not_(slice_) if choice >> j & 1 else slice_ for j, slice_ in enumerate(bits)
            )
            either = builder.and_(three, builder.xor(one, two))
            majority = builder.or_(builder.and_(one, two), either)
            for carry, place in ((majority, choice), (builder.not_(majority), 7 - choice)):
                builder.store(carry, builder.gep(row, [_I64(place)])).align = _SLICE_BYTES
        return context.get_dummy_value()

    n = types.int64
    return types.void(queue, n, n, table, n), generate


# add_carries(table, carries, q, start, sums): add to ``start`` the carries that query q chooses.
# Returns in which of the 8 blocks any sum does not overflow, as bits. If there are such, sums
# (10, 8) gets the digits, and last which overflow.
add_carries: Any = intrinsic(_emit_add)
# _put_bits(planes, block, byte, queue, w): put which items of a block have each bit of a byte set
# into word w of eight slices.
_put_bits: Any = intrinsic(_emit_put_bits)
# _reduce(queue, first, end, table, i): put the parity of three slices to the end of the queue, and
# their eight carries into row i of the table.
_reduce: Any = intrinsic(_emit_reduce)
