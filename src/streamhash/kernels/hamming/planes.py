"""Hamming distances of many items at once: the layout of codes, and the loop that reads it.

Items stand in blocks of 64, and in a block the first bytes of all 64 codes stand side by side, then
their second bytes, and so on: (n_blocks, n_bytes, 64), a *plane* for each byte of a code. A vector
register then holds one byte of 32 items, counts are summed in bytes, and no horizontal sum is ever
needed; a code takes the bytes it has, not whole words.

Of a query, a table of 16 counts for each half byte is made: the distance of that half from each
of the 16 values that an item's half may have. Where registers can look up bytes (AVX2), a half byte
of 32 items costs one look-up and one addition, and several queries share the reading of the items.
Elsewhere, bits are counted in bytes (one instruction on ARM and on AVX-512 with BITALG).

``look`` is what searches call: which of 64 items are nearer than a limit. After the first bytes of
the codes, as many as ``telling_bytes`` says, a block of which none can be near any more is left.
``measure`` gives all distances, for the metrics. ``look_weighted`` is ``look`` with other tables:
bits that weigh more or less, as far as a byte can tell.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel, part

Planes = NDArray[np.uint8]  # (n_blocks, n_bytes, ITEMS_PER_BLOCK)
Distances = NDArray[np.uint16]

ITEMS_PER_BLOCK = 64  # items of a block: as many as a mask has bits
# Queries that share the reading of a block: as many as there are registers for.
GROUPS = (8, 4, 1) if get_host_cpu_features().get("avx512bitalg", False) else (4, 1)
QUERIES_PER_GROUP, SMALLEST_GROUP = GROUPS[0], GROUPS[-2]
N_MASKS = QUERIES_PER_GROUP + 1  # of a group: what is near each query, and a count beside
_SHORT_BYTES = 31  # so many bytes of a code differ in at most 248 bits, which a byte can count
SATURATED_BYTES = 16  # codes up to here have weights summed up in bytes, and cut off at 255;
PIECE_BYTES, LARGEST_WEIGHT = 2, 63  # of longer ones, the four weights of a piece fit into a byte
_SPREAD = 3.0  # deviations from the mean that one of 64 items seldom has: in 1 of 12 blocks

# ---------------------------------------------------------------------------------------- layout


def n_blocks(n: int) -> int:
    """Blocks that ``n`` items need."""
    return -(-n // ITEMS_PER_BLOCK)


def to_planes(codes: Codes) -> Planes:
    """Lay rows of codes (n, bytes) out in blocks; the last is filled up with zeros."""
    planes = np.zeros((n_blocks(len(codes)), codes.shape[1], ITEMS_PER_BLOCK), np.uint8)
    put(codes, planes, 0)
    return planes


def put(codes: Codes, planes: Planes, first: int) -> None:
    """Write rows of codes to the places from ``first`` on; not a byte of the others is touched."""
    rows = planes.transpose(0, 2, 1)  # (n_blocks, ITEMS_PER_BLOCK, n_bytes), the same memory
    while len(codes):
        block, place = divmod(first, ITEMS_PER_BLOCK)
        n = min(ITEMS_PER_BLOCK - place, len(codes))
        if n < ITEMS_PER_BLOCK:
            rows[block, place : place + n] = codes[:n]
        else:  # all whole blocks at once
            whole = len(codes) // ITEMS_PER_BLOCK
            n *= whole
            rows[block : block + whole] = codes[:n].reshape(whole, *rows.shape[1:])
        codes, first = codes[n:], first + n


def from_planes(planes: Planes, positions: NDArray[np.int64]) -> Codes:
    """Take the codes at these positions out again, as rows (n, bytes)."""
    return np.ascontiguousarray(
        planes[positions // ITEMS_PER_BLOCK, :, positions % ITEMS_PER_BLOCK]
    )


class Queries(NamedTuple):
    """Codes that are looked for, and the tables of their half bytes, the lower half first."""

    codes: Codes  # (n, n_bytes)
    tables: NDArray[np.uint8]  # (n, 2 n_bytes, 16)


@kernel
def as_queries(codes: Codes) -> Queries:
    """Make what the loops read of the codes (n, bytes) that are looked for."""
    n, n_bytes = codes.shape
    tables = np.empty((n, 2 * n_bytes, 16), np.uint8)
    for q in range(n):
        for b in range(n_bytes):
            for value in range(16):
                tables[q, 2 * b, value] = bits_in(np.uint64((codes[q, b] & 15) ^ value))
                tables[q, 2 * b + 1, value] = bits_in(np.uint64((codes[q, b] >> 4) ^ value))
    return Queries(codes, tables)


@part
def group_size(left: int) -> int:
    """How many of the queries that are left share the next reading."""
    for size in GROUPS:
        if size <= left:
            return size
    return 0


@part
def telling_bytes(limit: int | np.int64, n_bytes: int) -> int:
    """After how many bytes of a code it is likely known that none of a block is nearer.

    Half the bits of unrelated codes differ, give or take: of m bits, m/2 with a deviation of √m/2.
    """
    root = _SPREAD / 2 + np.sqrt(_SPREAD * _SPREAD / 4 + 2 * np.float64(limit))
    n = int(root * root / 8) + 1
    return n if 4 * n <= 3 * n_bytes else n_bytes  # what is left must be worth another look


# -------------------------------------------------------------------------------- single numbers


def _on_word(result: Any, emit: Callable[[Any, Any], Any]) -> Any:
    def operation(_: Any, word: Any) -> Any:
        return result(word), lambda _, builder, __, arguments: emit(builder, arguments[0])

    return intrinsic(operation)


bits_in = _on_word(types.uint64, lambda builder, word: builder.ctpop(word))
# The place of the lowest bit of a number that is not zero.
first_bit = _on_word(types.int64, lambda builder, word: builder.cttz(word, ir.IntType(1)(1)))

# --------------------------------------------------------------------------- vectors of 64 bytes

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_BYTES, _SHORTS = ir.VectorType(_I8, ITEMS_PER_BLOCK), ir.VectorType(_I16, ITEMS_PER_BLOCK)
_TABLE = ir.VectorType(_I8, 16)
_NO_BYTES = ir.Constant(_BYTES, ir.Undefined)


def _order(places: range | list[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I32, len(places)), list(places))


def _load(builder: Any, pointer: Any, kind: Any) -> Any:
    value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    value.align = 1
    return value


def _store(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 1


def _prefetch(builder: Any, pointer: Any, level: int) -> None:
    """Ask for a line, to read: for the innermost cache, level 3, or for the others, 2."""
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
    builder.call(ask, [pointer, _I32(0), _I32(level), _I32(1)])


def _fill(builder: Any, value: Any) -> Any:
    """Copy one number into every place of a vector."""
    kind = ir.VectorType(value.type, ITEMS_PER_BLOCK)
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, _I32(0))
    return builder.shuffle_vector(one, nothing, _order([0] * ITEMS_PER_BLOCK))


def _has(context: Any, feature: str) -> bool:
    """Whether code is made for a processor with this feature."""
    return f"+{feature}" in context.codegen().magic_tuple()[-1].split(",")


def _looks_up_bytes(context: Any) -> bool:
    """Whether code is made for registers of 32 bytes or 64 with look-up."""
    return _has(context, "avx2")


# A way to measure gets a byte of 64 items ready, once for all queries; what it returns adds the
# distances of this byte to the total so far of a query, whose byte and two tables it is given.
_Add = Callable[[Any, Any, Any], Any]
_Way = Callable[[Any, Any, Any], _Add]


def _saturated(builder: Any) -> Callable[[Any, Any], Any]:
    """Addition of bytes that ends at 255."""
    kind = ir.FunctionType(_BYTES, [_BYTES, _BYTES])
    name = f"llvm.uadd.sat.v{ITEMS_PER_BLOCK}i8"
    add = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
    return lambda one, other: builder.call(add, [one, other])


def _by_counts(context: Any, builder: Any, items: Any) -> _Add:
    """Numbers of bits that differ; where there is no instruction to count them, by tables."""
    if _looks_up_bytes(context) and not _has(context, "avx512bitalg"):
        return _by_tables(context, builder, items, builder.add)
    count = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
        builder.module, ir.FunctionType(_BYTES, [_BYTES]), f"llvm.ctpop.v{ITEMS_PER_BLOCK}i8"
    )

    def add(total: Any, byte: Any, _: Any) -> Any:
        differ = builder.xor(items, _fill(builder, builder.load(byte)))
        return builder.add(total, builder.call(count, [differ]))

    return add


def _by_weights(context: Any, builder: Any, items: Any) -> _Add:
    """Sums of the tables' numbers, none above 255: by look-up, or bit by bit where there is none.

    Bit by bit means the numbers of single bits: a sum of those may not be above their table's.
    """
    sum_of = _saturated(builder)
    if _looks_up_bytes(context):
        return _by_tables(context, builder, items, sum_of)
    nothing = ir.Constant(_BYTES, [0] * ITEMS_PER_BLOCK)

    def add(total: Any, byte: Any, tables: Any) -> Any:
        own = builder.load(byte)
        differ = builder.xor(items, _fill(builder, own))
        for bit in range(8):
            half = builder.and_(builder.lshr(own, _I8(bit // 4 * 4)), _I8(15))
            entry = builder.zext(builder.xor(half, _I8(1 << bit % 4)), _I64)
            number = builder.load(builder.gep(tables, [builder.add(entry, _I64(bit // 4 * 16))]))
            is_other = builder.and_(differ, ir.Constant(_BYTES, [1 << bit] * ITEMS_PER_BLOCK))
            chosen = builder.icmp_unsigned("!=", is_other, nothing)
            total = sum_of(total, builder.select(chosen, _fill(builder, number), nothing))
        return total

    return add


def _by_tables(context: Any, builder: Any, items: Any, sum_of: Callable[[Any, Any], Any]) -> _Add:
    """Look the halves of a byte up in the query's tables."""
    width, name = (64, "avx512.pshuf.b.512") if _has(context, "avx512bw") else (32, "avx2.pshuf.b")
    kind = ir.VectorType(_I8, width)
    look_up = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
        builder.module, ir.FunctionType(kind, [kind, kind]), f"llvm.x86.{name}"
    )
    low = builder.and_(items, ir.Constant(_BYTES, [15] * ITEMS_PER_BLOCK))
    high = builder.lshr(items, ir.Constant(_BYTES, [4] * ITEMS_PER_BLOCK))
    starts = range(0, ITEMS_PER_BLOCK, width)
    parts = [
        [builder.shuffle_vector(half, _NO_BYTES, _order(range(at, at + width))) for at in starts]
        for half in (low, high)
    ]

    def add(total: Any, _: Any, tables: Any) -> Any:
        for halves, at in zip(parts, (0, 16), strict=True):
            table = _load(builder, builder.gep(tables, [_I64(at)]), _TABLE)
            copies = builder.shuffle_vector(table, table, _order([*range(16)] * (width // 16)))
            found = [builder.call(look_up, [copies, half]) for half in halves]
            if len(found) == 2:
                found = [builder.shuffle_vector(*found, _order(range(ITEMS_PER_BLOCK)))]
            total = sum_of(total, found[0])
        return total

    return add


class _Measure(NamedTuple):
    """What is summed up, how long a code may be for sums in bytes, and after how many bytes a
    longer one's go over to sums of 16 bits.
    """

    way: _Way
    short_bytes: int
    piece_bytes: int


_COUNTS = _Measure(_by_counts, _SHORT_BYTES, _SHORT_BYTES)
_WEIGHTS = _Measure(_by_weights, SATURATED_BYTES, PIECE_BYTES)


class _Block:
    """The code that measures one block from some queries: emitted once for each kernel."""

    def __init__(
        self, measure: _Measure, context: Any, builder: Any, kinds: Sequence[Any], arguments: Any
    ) -> None:
        self.builder, self.context = builder, context
        self.way, self.short_bytes, self.piece_bytes = measure
        planes, codes, tables = (
            cgutils.create_struct_proxy(kind)(context, builder, value=value)  # type: ignore[no-untyped-call]
            for kind, value in zip(kinds[:3], arguments[:3], strict=True)
        )
        block, q = arguments[3:5]
        self.n_bytes = cgutils.unpack_tuple(builder, planes.shape, 3)[1]  # type: ignore[no-untyped-call]
        self.planes = builder.gep(planes.data, [self._times(block, ITEMS_PER_BLOCK)])
        self.codes = builder.gep(codes.data, [self._times(q, 1)])
        self.tables = builder.gep(tables.data, [self._times(q, 32)])
        self.is_short = builder.icmp_signed("<=", self.n_bytes, _I64(self.short_bytes))

    def measure(self, out: Any) -> None:
        """Write all distances from one query to ``out``."""
        with self.builder.if_else(self.is_short) as (short, long):
            with short:
                self.put(self.sums(1, _I64(0), self.n_bytes)[0], out, _I64(0))
            with long:
                self.long_sums(1, out)

    def put(self, total: Any, out: Any, g: Any) -> None:
        """Write distances in bytes from query ``g`` to ``out``."""
        place = self.builder.gep(out, [self.builder.mul(g, _I64(ITEMS_PER_BLOCK))])
        _store(self.builder, self.builder.zext(total, _SHORTS), place)

    def _times(self, n: Any, size: int) -> Any:
        return self.builder.mul(self.builder.mul(n, self.n_bytes), _I64(size))

    def sums(
        self, n_queries: int, start: Any, stop: Any, *, first: Any = None, begin: Any = None
    ) -> list[Any]:
        """Distances in the bytes from ``start`` to ``stop``, of each query, as vectors of bytes.

        Queries are those from ``first`` on; distances are added to those of ``begin``.
        """
        builder = self.builder
        first = _I64(0) if first is None else first
        begin = ir.Constant(_BYTES, [0] * ITEMS_PER_BLOCK) if begin is None else begin
        totals = [cgutils.alloca_once(builder, _BYTES) for _ in range(n_queries)]  # type: ignore[no-untyped-call]
        for total in totals:
            builder.store(begin, total)
        with cgutils.for_range_slice(builder, start, stop, _I64(1), inc=True) as (b, _):
            at = builder.gep(self.planes, [builder.mul(b, _I64(ITEMS_PER_BLOCK))])
            add = self.way(self.context, builder, _load(builder, at, _BYTES))
            for g, total in enumerate(totals):
                place = builder.add(b, self._times(builder.add(first, _I64(g)), 1))
                byte = builder.gep(self.codes, [place])
                table = builder.gep(self.tables, [builder.mul(place, _I64(32))])
                builder.store(add(builder.load(total), byte, table), total)
        return [builder.load(total) for total in totals]

    def saturated_sums(
        self, n_queries: int, start: Any, stop: Any, *, first: Any = None, begin: Any = None
    ) -> list[Any]:
        """Do as ``sums`` for codes however long: what is above 255 ends there."""
        builder, add = self.builder, _saturated(self.builder)
        totals = [cgutils.alloca_once(builder, _BYTES) for _ in range(n_queries)]  # type: ignore[no-untyped-call]
        rest = builder.add(start, _I64(self.piece_bytes))
        rest = builder.select(builder.icmp_signed("<", rest, stop), rest, stop)
        for total, sums in zip(totals, self.sums(n_queries, start, rest, first=first), strict=True):
            builder.store(sums if begin is None else add(begin, sums), total)
        with self._pieces(rest, stop) as (piece, end):
            more = self.sums(n_queries, piece, end, first=first)
            for total, sums in zip(totals, more, strict=True):
                builder.store(add(builder.load(total), sums), total)
        return [builder.load(total) for total in totals]

    @contextmanager
    def _pieces(self, start: Any, stop: Any) -> Iterator[tuple[Any, Any]]:
        """Emit a loop over the bytes from ``start`` to ``stop``, as many as a byte counts each."""
        builder, size = self.builder, _I64(self.piece_bytes)
        with cgutils.for_range_slice(builder, start, stop, size, inc=True) as (piece, _):
            end = builder.add(piece, size)
            yield piece, builder.select(builder.icmp_signed("<", end, stop), end, stop)

    def long_sums(self, n_queries: int, out: Any) -> list[Any]:
        """Whole distances of codes that are too long for bytes: summed up in ``out``."""
        builder = self.builder
        places = [builder.gep(out, [_I64(ITEMS_PER_BLOCK * g)]) for g in range(n_queries)]
        for place in places:
            _store(builder, ir.Constant(_SHORTS, [0] * ITEMS_PER_BLOCK), place)
        with self._pieces(_I64(0), self.n_bytes) as (start, stop):
            for total, place in zip(self.sums(n_queries, start, stop), places, strict=True):
                so_far = _load(builder, place, _SHORTS)
                _store(builder, builder.add(so_far, builder.zext(total, _SHORTS)), place)
        return [_load(builder, place, _SHORTS) for place in places]


class _Look:
    """The code that tells which items of a block are nearer to some queries than their limits."""

    def __init__(self, block: _Block, limits: Any, out: Any, masks: Any, result: Any) -> None:
        self.builder, self.block = block.builder, block
        self.limits, self.out, self.masks, self.result = limits, out, masks, result

    def look(self, n_queries: int, telling: Any) -> None:
        """Write which items are near, and if any is, their distances.

        A byte tells of each distance whether it is below a limit that a byte can hold, of codes
        however long, since sums end at 255. Then a block may be left after the ``telling`` bytes,
        if there are any; what these show to be near is looked at to the end, query by query.
        """
        builder, block = self.builder, self.block
        in_bytes = block.is_short
        if telling is not None:
            fit = [builder.icmp_unsigned("<=", self._limit(g), _I16(255)) for g in range(n_queries)]
            in_bytes = builder.or_(in_bytes, reduce(builder.and_, fit))
        with builder.if_else(in_bytes) as (short, long):
            with short:
                if telling is None:
                    sums = block.sums(n_queries, _I64(0), block.n_bytes)
                    nearer = self._all_nearer(sums)
                    with builder.if_then(self._any(nearer), likely=False):
                        for g, total in enumerate(sums):
                            self._put(nearer[g], g)
                            block.put(total, self.out, _I64(g))
                else:
                    sums = block.saturated_sums(n_queries, _I64(0), telling)
                    nearer = self._all_nearer(sums)
                    with builder.if_then(self._any(nearer), likely=False):
                        self._finish(sums, nearer, telling)
            with long:
                nearer = self._all_nearer(block.long_sums(n_queries, self.out))
                with builder.if_then(self._any(nearer), likely=False):
                    for g, mask in enumerate(nearer):
                        self._put(mask, g)

    def _finish(self, sums: list[Any], nearer: list[Any], telling: Any) -> None:
        """Look at the bytes after the telling ones, for each query to which any item is near."""
        builder, block = self.builder, self.block
        so_far = cgutils.alloca_once(builder, _BYTES, len(sums))  # type: ignore[no-untyped-call]
        left = cgutils.alloca_once(builder, _I64)  # type: ignore[no-untyped-call]
        queries = _I64(0)
        for g, (total, mask) in enumerate(zip(sums, nearer, strict=True)):
            builder.store(total, builder.gep(so_far, [_I64(g)]))
            self._put(_I64(0), g)
            is_near = builder.icmp_unsigned("!=", mask, _I64(0))
            queries = builder.or_(queries, builder.select(is_near, _I64(1 << g), _I64(0)))
        builder.store(queries, left)
        builder.store(_I64(0), self.result)
        finished = builder.gep(self.masks, [_I64(QUERIES_PER_GROUP)])
        builder.store(builder.add(builder.load(finished), builder.ctpop(queries)), finished)
        body, end = builder.append_basic_block("query"), builder.append_basic_block("done")
        builder.branch(body)
        builder.position_at_end(body)
        queries = builder.load(left)
        g = builder.cttz(queries, ir.IntType(1)(1))
        builder.store(builder.and_(queries, builder.sub(queries, _I64(1))), left)
        begin = builder.load(builder.gep(so_far, [g]))
        (total,) = block.saturated_sums(1, telling, block.n_bytes, first=g, begin=begin)
        mask = self._nearer(total, g)
        self._put(mask, g)
        block.put(total, self.out, g)
        builder.store(builder.or_(builder.load(self.result), mask), self.result)
        more = builder.icmp_unsigned("!=", builder.load(left), _I64(0))
        builder.cbranch(more, body, end)
        builder.position_at_end(end)

    def _put(self, mask: Any, g: Any) -> None:
        g = _I64(g) if isinstance(g, int) else g
        self.builder.store(mask, self.builder.gep(self.masks, [g]))

    def _limit(self, g: Any) -> Any:
        g = _I64(g) if isinstance(g, int) else g
        return self.builder.load(self.builder.gep(self.limits, [g]))

    def _nearer(self, total: Any, g: Any) -> Any:
        """Which items are nearer to query ``g`` than its limit, as bits."""
        limit = self._limit(g)
        if total.type == _BYTES:
            limit = self.builder.trunc(limit, _I8)
        nearer = self.builder.icmp_unsigned("<", total, _fill(self.builder, limit))
        return self.builder.bitcast(nearer, _I64)

    def _all_nearer(self, sums: list[Any]) -> list[Any]:
        return [self._nearer(total, g) for g, total in enumerate(sums)]

    def _any(self, nearer: list[Any]) -> Any:
        """Whether any item is near, which is the result unless more is looked at."""
        some = reduce(self.builder.or_, nearer)
        self.builder.store(some, self.result)
        return self.builder.icmp_unsigned("!=", some, _I64(0))


def _pointer(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return cgutils.create_struct_proxy(kind)(context, builder, value=value).data  # type: ignore[no-untyped-call]


def _looking(measure: _Measure, *, leaves: bool) -> Any:
    def emit(
        _: Any,
        group: Any,  # noqa: ARG001
        planes: Any,
        codes: Any,
        tables: Any,
        block: Any,  # noqa: ARG001
        q: Any,  # noqa: ARG001
        limits: Any,
        at: Any,  # noqa: ARG001
        telling: Any,  # noqa: ARG001
        out: Any,
        masks: Any,
    ) -> Any:
        n = types.int64
        signature = types.uint64(n, planes, codes, tables, n, n, limits, n, n, out, masks)
        return signature, generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = _Block(measure, context, builder, signature.args[1:], arguments[1:])
        limits, out, masks = (
            _pointer(context, builder, signature.args[i], arguments[i]) for i in (6, 9, 10)
        )
        limits, telling = builder.gep(limits, [arguments[7]]), arguments[8]
        result = cgutils.alloca_once(builder, _I64)  # type: ignore[no-untyped-call]
        looking = _Look(block, limits, out, masks, result)
        end = builder.append_basic_block("looked")
        sizes = builder.switch(arguments[0], end)
        for size in GROUPS:
            sizes.add_case(_I64(size), builder.append_basic_block(f"group_{size}"))
            builder.position_at_end(builder.function.blocks[-1])
            # One query takes as long as the reading, which is quickest without a gap.
            first = telling if size > 1 else block.n_bytes
            looking.look(size, first if leaves else None)
            builder.branch(end)
        builder.position_at_end(end)
        return builder.load(result)

    return intrinsic(emit)


def _emit_equal(_: Any, planes: Any, codes: Any, block: Any, q: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, values = signature.args, arguments
        measured = _Block(
            _COUNTS, context, builder, (*kinds[:2], kinds[1]), (*values[:2], values[1], *values[2:])
        )
        result = cgutils.alloca_once(builder, _I64)  # type: ignore[no-untyped-call]
        builder.store(_I64(-1), result)
        with cgutils.for_range(builder, measured.n_bytes) as loop:
            at = builder.gep(measured.planes, [builder.mul(loop.index, _I64(ITEMS_PER_BLOCK))])
            byte = builder.load(builder.gep(measured.codes, [loop.index]))
            same = builder.icmp_unsigned("==", _load(builder, at, _BYTES), _fill(builder, byte))
            mask = builder.and_(builder.load(result), builder.bitcast(same, _I64))
            builder.store(mask, result)
        return builder.load(result)

    n = types.int64
    return types.uint64(planes, codes, n, n), generate


def _fetching(level: int) -> Any:
    def emit(_: Any, planes: Any, block: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = cgutils.create_struct_proxy(signature.args[0])(  # type: ignore[no-untyped-call]
                context, builder, value=arguments[0]
            )
            n_bytes = cgutils.unpack_tuple(builder, array.shape, 3)[1]  # type: ignore[no-untyped-call]
            start = builder.mul(builder.mul(arguments[1], n_bytes), _I64(ITEMS_PER_BLOCK))
            with cgutils.for_range(builder, n_bytes) as loop:
                at = builder.add(start, builder.mul(loop.index, _I64(ITEMS_PER_BLOCK)))
                _prefetch(builder, builder.gep(array.data, [at]), level)
            return context.get_dummy_value()

        return types.void(planes, types.int64), generate

    return intrinsic(emit)


def _emit_measure(
    _: Any,
    planes: Any,
    codes: Any,
    tables: Any,
    block: Any,  # noqa: ARG001
    q: Any,  # noqa: ARG001
    out: Any,
    first: Any,  # noqa: ARG001
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out = _pointer(context, builder, signature.args[5], arguments[5])
        measured = _Block(_COUNTS, context, builder, signature.args, arguments)
        measured.measure(builder.gep(out, [arguments[6]]))
        return context.get_dummy_value()

    n = types.int64
    return types.void(planes, codes, tables, n, n, out, n), generate


# look(group, planes, codes, tables, block, q, limits, at, telling, out, masks): whether any item of
# a block is nearer than limits[at] to query q, limits[at + 1] to query q + 1 and so on, for a group
# of one of the sizes in GROUPS; if any is, which, as bits of masks, and their distances
# in out.
# The block is left after the telling bytes if these show that none is; masks[-1], of N_MASKS, grows
# by the number of queries for which they do not. No limit is farther than any distance by more than
# 2.
look: Any = _looking(_COUNTS, leaves=True)
# The same by weights: the sums of what the tables have for an item's half bytes, cut off at 255;
# every block is read to its end.
look_weighted: Any = _looking(_WEIGHTS, leaves=False)
_measure_block: Any = intrinsic(_emit_measure)
# fetch(planes, block): ask for a block that will be read soon, fetch_next for one that is read at
# once; one that is not there does no harm.
fetch, fetch_next = _fetching(2), _fetching(3)
# equal_to(planes, codes, block, q): which items of a block have the code of row q, as bits.
equal_to: Any = intrinsic(_emit_equal)


@kernel
def measure(
    queries: Queries, q: int, planes: Planes, first: int, n: int, distances: Distances
) -> None:
    """Distances of query ``q`` from the items of the ``n`` blocks after block ``first``."""
    codes, tables = queries.codes, queries.tables
    for i in range(n):
        _measure_block(planes, codes, tables, first + i, q, distances, ITEMS_PER_BLOCK * i)


def plain_distances(codes: Codes, planes: Planes, n: int) -> Iterator[NDArray[np.int64]]:
    """Distances of one code after the other from the first ``n`` items."""
    for code in codes:
        counts = np.bitwise_count(code[:, None] ^ planes).sum(axis=1, dtype=np.int64)
        yield counts.reshape(-1)[:n]
