"""k.tensor: the systolic array."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from firmware.arguments import at_once, checked
from firmware.builder import Builder
from firmware.engines.base import Engine, access, caller, need
from firmware.engines.row_tiles import RowTile, RowTiles
from firmware.engines.scales import Scales, take_scales
from firmware.engines.sparse import check_moving, check_stationary, take_tags
from firmware.hazards import Access
from firmware.numbers import split_format
from firmware.sparsity import find_pattern
from firmware.views import TileView
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Opcode, Queue, Rounding
from rtl.contract.kinds import ELEMENTS, FP4_CODES, SCALE_FORMATS, SCALE_ROWS, Kind, kinds_of
from rtl.contract.memmap import Space
from rtl.contract.sparsity import SPARSE_FORMATS, Sparsity

__all__ = ["ROUNDINGS", "TensorEngine"]


@dataclass(frozen=True)
class _Operand:
    """An operand that has been checked: its instruction's fields and what it reads. FP32 is `halved`."""

    view: TileView
    kind: Kind
    fields: dict[str, Any]
    accesses: tuple[Access, ...]
    pattern: Sparsity | None = None  # of a sparse stationary one

    @property
    def halved(self) -> bool:
        return self.kind == Kind.HIGH

    @property
    def base(self) -> str:
        """Format of a single element."""
        return split_format(self.view.dtype)[0]


ROUNDINGS = {"fp32": Rounding.FP32, "bf16": Rounding.NEAREST, "stochastic": Rounding.STOCHASTIC}


def _rounding(name: str, seed: int) -> dict[str, int]:
    """Fields of an instruction that rounds its sums."""
    need(name in ROUNDINGS, f"rounding is {name}; it must be one of {', '.join(ROUNDINGS)}")
    need(0 <= seed < 1 << 32, f"the seed of rounding is {seed}; it must be from 0 to {(1 << 32) - 1}")
    need(seed == 0 or name == "stochastic", f"rounding {name} takes no seed, but {seed} was given")
    return {"rounding": ROUNDINGS[name], "imm2": seed}


@checked
class TensorEngine(Engine):
    """The systolic array: `k.tensor`.

    The format of the operands says what a row takes at once (rtl.contract.kinds): one number; two FP8 numbers
    (_x2, double rate); four of an MX block (_x4) with `scales`, a view of E8M0 or E4M3FN bytes on the partitions of
    the operand from its block of Q on, of which `slot` is used; FP32 numbers, which are multiplied in four passes.
    `fp4`: E4M3FN codes that stand for the sixteen E2M1 codes. With `sparsity`, a pattern such as "4:16", a load takes
    kept numbers and their `tags`, uint16 on the same partitions, four columns an element; the moving operand then has
    as many numbers side by side as the pattern's ratio, bf16_x2 or bf16_x4. `tiles`: the rows of the array are 1, 2
    or 4 tiles; the instruction works on the one that its operand lies in, beside those of other tiles.
    """

    queue = Queue.TENSOR

    def __init__(self, kernel: Builder):
        super().__init__(kernel)
        self._tiles: RowTiles[_Operand] = RowTiles(kernel)

    @at_once()
    def keeps(self) -> tuple[Any, ...]:
        """Stationary operands."""
        return self._tiles.keeps()

    @at_once()
    def forgets(self, before: Sequence[tuple[Any, ...]]) -> None:
        """A matmul needs another load."""
        self._tiles.forgets(before)

    def load(
        self,
        view: TileView,
        scales: TileView | None = None,
        *,
        slot: int = 0,
        fp4: Sequence[int] = FP4_CODES,
        tags: TileView | None = None,
        sparsity: str | None = None,
        tiles: int = 1,
    ) -> None:
        """Load a stationary operand [K partitions, M columns] of SBUF, for the matmuls that follow."""
        cols = self._k.cfg.tensor.cols
        if sparsity is None:
            need(tags is None, f"stationary operand {view.tile.name} has tags and no sparsity, such as '4:16'")
            operand = self._operand(view, "stationary operand", scales, slot, fp4)
            need(
                operand.kind != Kind.SPARSE,
                f"stationary operand {view.tile.name} is {view.dtype}; such numbers only move, beside sparse weights",
            )
        else:
            need(scales is None, f"stationary operand {view.tile.name} has sparsity {sparsity}, which has no scales")
            operand = self._sparse(view, tags, find_pattern(sparsity))
        need(
            view.elements <= cols,
            f"stationary operand {view.tile.name} has {view.elements} columns, more than tensor.cols ({cols})",
        )
        tile = self._tiles.of(view, "stationary operand", tiles)
        if not operand.halved:  # its halves are loaded by each matmul
            self._load(operand, operand.kind, tile)
        self._tiles.loads(tile, operand)

    def _load(self, operand: _Operand, kind: Kind, tile: RowTile) -> None:
        fields: dict[str, Any] = operand.fields | {"kind": kind, "tile": tile.code}
        self._tiles.waits(tile, operand.view.tile.name)
        self._k.issue(Queue.TENSOR, Opcode.LOAD_STATIONARY, accesses=operand.accesses, source=caller(), **fields)

    def matmul(
        self,
        moving: TileView,
        psum: TileView,
        scales: TileView | None = None,
        *,
        slot: int = 0,
        fp4: Sequence[int] = FP4_CODES,
        accumulate: bool = False,
        tiles: int = 1,
        rounding: str = "fp32",
        seed: int = 0,
        part: str = "",
    ) -> None:
        """psum[M, N] = (or += with `accumulate`) stationary[K, M]^T moving[K, N].

        `rounding` of what is written: "fp32" none, "bf16" to the nearest BF16, "stochastic" to BF16 at random, a
        function of `seed` and of where the result belongs. PSUM holds it as FP32. `part`: what the report calls its
        beats, such as "transpose" where one operand is the identity.
        """
        k, cfg = self._k, self._k.cfg.tensor
        way = _rounding(rounding, seed)
        tile = self._tiles.of(moving, "moving operand", tiles)
        loaded = self._tiles.held(tile, moving.tile.name)
        stationary = loaded.view
        operand = self._operand(moving, "moving operand", scales, slot, fp4)
        need(
            (moving.start, moving.partitions) == (stationary.start, stationary.partitions),
            f"moving operand {moving.tile.name} is on {moving.partitions} partitions from {moving.start}, "
            f"the stationary one on {stationary.partitions} from {stationary.start}; they must be the same",
        )
        self._together(loaded, operand)
        if loaded.pattern is not None:
            operand.fields["sparsity"] = loaded.pattern.code
        need(
            psum.tile.space == Space.PSUM and psum.start == 0 and psum.partitions == stationary.elements,
            f"a matmul with {stationary.elements} stationary columns writes to {stationary.elements} PSUM "
            f"partitions from 0, not to {psum.partitions} {psum.tile.space.name} partitions "
            f"from {psum.start}",
        )
        need(
            psum.elements == moving.elements <= cfg.moving_max,
            f"a matmul of {moving.elements} moving columns writes {psum.elements}; they must be equal and at "
            f"most tensor.moving_max ({cfg.moving_max})",
        )
        span = 1
        for step, count in reversed(psum.dims):
            if count > 1:
                need(
                    step >= span,
                    f"a matmul writes {psum.tile.name} with step {step}, which meets an element twice; "
                    f"steps must ascend without overlap",
                )
                span = step * count
        # Accumulation reads PSUM too, but in the order of the queue, which the array keeps.
        accesses = (*operand.accesses, access(psum, True))
        target = k.pattern(psum, "result")
        halves = (Kind.LOW, Kind.HIGH) if operand.halved else (operand.kind,)
        for of_weights in halves:
            if operand.halved:
                self._load(loaded, of_weights, tile)
            for kind in halves:
                fields = operand.fields | {"kind": kind, "tile": tile.code, "dst": target, "accumulate": accumulate}
                if kind == of_weights == halves[-1]:  # the last pass of FP32 operands
                    fields |= way
                needs = self._tiles.needs(tile, psum, accesses)
                fields |= {"part": part, "source": caller()}
                k.issue(Queue.TENSOR, Opcode.MULTIPLY_MOVING, accesses=accesses, needs=needs, **fields)
                self._tiles.sent(tile, psum)
                accumulate = True

    def transpose(self, view: TileView, psum: TileView, *, tiles: int = 1) -> None:
        """psum[M, K] = view[K, M]^T, the bits of fp32, bf16 or fp16; 16 bits become the upper half of an FP32.

        It goes through the array beside matmuls, and leaves the operand that was loaded last to those behind it.
        """
        k, cfg = self._k, self._k.cfg.tensor
        name, what = view.tile.name, "operand"
        need(view.tile.space == Space.SBUF, f"{what} {name} of a transpose lies in PSUM; the array reads from SBUF")
        formats = kinds_of(cfg)[Kind.RAW]
        need(view.dtype in formats, f"{what} {name} is {view.dtype}; the array transposes {', '.join(formats)}")
        need(
            view.start + view.partitions <= cfg.rows and view.elements <= cfg.cols,
            f"{what} {name} has {view.elements} columns and ends at partition {view.start + view.partitions - 1}; the "
            f"array transposes at most {cfg.rows} rows by {cfg.cols} columns",
        )
        need(
            psum.tile.space == Space.PSUM and psum.start == 0 and psum.shape[0] == view.elements,
            f"a transpose of {view.elements} columns writes to {view.elements} PSUM partitions from 0, not to "
            f"{psum.partitions} {psum.tile.space.name} partitions from {psum.start}",
        )
        need(
            psum.elements == view.partitions,
            f"a transpose of {view.partitions} partitions writes {view.partitions} elements, not {psum.elements}",
        )
        tile = self._tiles.of(view, what, tiles)
        self._tiles.free(tile, name)
        accesses = (access(view, False), access(psum, True))
        ascending = k.pattern(psum, "result")
        last = sum(step * (count - 1) for step, count in ascending.dims) * FORMATS["fp32"].bytes
        dims = tuple((-step, count) for step, count in ascending.dims)  # the last row leaves the array first
        fields: dict[str, Any] = {"kind": Kind.RAW, "tile": tile.code, "src0": k.pattern(view, what)}
        fields["dst"] = replace(ascending, offset=ascending.offset + last, dims=dims)
        needs = self._tiles.needs(tile, psum, accesses, turns=True)
        k.issue(Queue.TENSOR, Opcode.TENSOR_TRANSPOSE, accesses=accesses, needs=needs, source=caller(), **fields)
        self._tiles.turned(tile, psum)

    def _together(self, stationary: _Operand, moving: _Operand) -> None:
        """What the two sides must have in common."""
        if stationary.pattern is not None:
            check_moving(moving.view, stationary.view, stationary.pattern)
            return
        names = f"{stationary.view.tile.name} is {stationary.view.dtype}, {moving.view.tile.name} {moving.view.dtype}"
        need(
            stationary.kind == moving.kind,
            f"stationary operand {names}; a row takes {ELEMENTS[stationary.kind]} element(s) of kind "
            f"{stationary.kind.name.lower()} at once, so both sides must be of that kind",
        )
        need(
            {stationary.base, moving.base} != {"e4m3", "e4m3fn"},
            f"stationary operand {names}; the legacy e4m3 and e4m3fn cannot be mixed in one matmul",
        )

    def _kind(self, view: TileView, what: str, scales: TileView | None) -> Kind:
        base, count = split_format(view.dtype)
        if base in SPARSE_FORMATS and count > 1:
            kind = Kind.SPARSE
        elif base == "fp32":
            kind = Kind.HIGH
        elif count == ELEMENTS[Kind.QUAD]:
            kind = Kind.QUAD_E4M3 if scales is not None and scales.dtype == "e4m3fn" else Kind.QUAD
        else:
            kind = Kind.PAIR if count == ELEMENTS[Kind.PAIR] else Kind.ONE
        kinds = kinds_of(self._k.cfg.tensor)
        name = f"{what} {view.tile.name} is {view.dtype}"
        setting = "tensor.sparsity" if kind == Kind.SPARSE else "tensor.mx"
        setting = "tensor.nvfp4" if kind == Kind.QUAD_E4M3 and Kind.QUAD in kinds else setting
        need(kind in kinds, f"{name}, with {setting} off there is no kind {kind.name.lower()}")
        need(
            base in kinds[kind],
            f"{name}; the array takes fp32, tf32, bf16, fp16, e4m3fn, e4m3, e5m2, and packed _x2 and _x4 formats",
        )
        return kind

    def _sparse(self, view: TileView, tags: TileView | None, pattern: Sparsity) -> _Operand:
        """A stationary operand of kept numbers."""
        check_stationary(view, pattern)
        operand = self._operand(view, "stationary operand", None, 0, FP4_CODES)
        name = f"stationary operand {view.tile.name} has sparsity {pattern.name}"
        need(Kind.SPARSE in kinds_of(self._k.cfg.tensor), f"{name}, with tensor.sparsity off there is no kind sparse")
        source, accesses = take_tags(self._k, view, tags, pattern)
        fields = operand.fields | {"src1": source, "sparsity": pattern.code}
        return _Operand(view, Kind.SPARSE, fields, (*operand.accesses, *accesses), pattern)

    def _operand(self, view: TileView, what: str, scales: TileView | None, slot: int, fp4: Sequence[int]) -> _Operand:
        k, cfg = self._k, self._k.cfg.tensor
        need(view.tile.space == Space.SBUF, f"{what} {view.tile.name} lies in PSUM; the array reads from SBUF")
        kind = self._kind(view, what, scales)
        need(
            view.start + view.partitions <= cfg.rows,
            f"{what} {view.tile.name} ends at partition {view.start + view.partitions - 1}; "
            f"the array has rows 0 to {cfg.rows - 1}",
        )
        fields: dict[str, Any] = {"src0": k.pattern(view, what)}
        accesses = [access(view, False)]
        if kind in SCALE_FORMATS:
            rows = SCALE_ROWS[kind]
            need(
                view.start % rows == 0 and view.partitions % rows == 0,
                f"{what} {view.tile.name} takes {view.partitions} partitions from {view.start}; {rows} partitions "
                f"share a scale, and a block cannot be cut",
            )
            found: Scales = take_scales(k, view, kind, scales, slot, what)
            fields["src1"] = found.pattern
            accesses += found.accesses
        else:
            need(scales is None, f"{what} {view.tile.name} is {view.dtype}; only _x4 formats have scales")
        if split_format(view.dtype)[0] == "e2m1":
            need(
                len(fp4) == 16 and all(0 <= code < 256 for code in fp4),
                f"the map of E2M1 numbers of {view.tile.name} has {len(fp4)} entries; it must be 16 codes of 8 bits",
            )
            for name, codes in (("imm0", fp4[:8]), ("imm1", fp4[8:])):
                fields[name] = sum(code << FORMATS["e4m3fn"].bits * i for i, code in enumerate(codes))
        return _Operand(view, kind, fields, tuple(accesses))
