"""What the vector and the scalar engine share: operands of any format, constants and columns, the accumulator."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from firmware.engines.base import Engine, access, caller, need
from firmware.views import KernelError, TileView
from rtl.contract.formats import FORMATS
from rtl.contract.isa import AluOp, Opcode, Reduce
from rtl.contract.memmap import Space
from rtl.contract.rule import ELEMENTS_MAX

__all__ = ["ElementwiseEngine", "Scalar", "is_bit_operator", "meet", "operator"]

Scalar = float | TileView
"""A constant, or one FP32 column of SBUF: a value for each partition."""

SOURCES = tuple(name for name, f in FORMATS.items() if f.bits >= 8 and name not in ("tf32", "e8m0"))
TARGETS = (*SOURCES, "tf32")
FIRST_BIT_OPERATOR = 32
_REDUCE = {None: Reduce.IDLE} | {kind.name.lower(): kind for kind in Reduce}


def operator(op: str | AluOp, what: str, allowed: Iterable[AluOp] = AluOp) -> AluOp:
    """The operator with this name. KernelError if there is none, or `what` does not take it."""
    names = [one.name.lower() for one in allowed]
    name = op.name.lower() if isinstance(op, AluOp) else op
    need(name in names, f"{what} takes the operators {', '.join(names)}, not {name!r}")
    return AluOp[name.upper()]


def is_bit_operator(op: AluOp) -> bool:
    """Whether it works on the bits of integers."""
    return op >= FIRST_BIT_OPERATOR


def _offsets(view: TileView) -> np.ndarray:
    """Bytes of a partition that a view touches."""
    at = np.zeros(1, np.int64)
    size = FORMATS[view.dtype].bytes
    for step, count in view.dims:
        at = (at[:, None] + np.arange(count) * step * size).reshape(-1)
    return np.unique(view.offset + at[:, None] + np.arange(size))


def meet(a: TileView, b: TileView) -> bool:
    """Whether two views share a byte."""
    if a.tile != b.tile or any(al >= bh or bl >= ah for (al, ah), (bl, bh) in zip(a.box, b.box, strict=True)):
        return False
    return bool(np.intersect1d(_offsets(a), _offsets(b)).size)


class ElementwiseEngine(Engine):
    """An engine of one lane a partition."""

    def _source(self, view: TileView, what: str) -> None:
        need(
            view.dtype in SOURCES,
            f"{what} reads {', '.join(SOURCES)}, not {view.dtype}, the format of {view.tile.name}",
        )

    def _target(self, view: TileView, what: str) -> None:
        need(
            view.dtype in TARGETS,
            f"{what} writes {', '.join(TARGETS)}, not {view.dtype}, the format of {view.tile.name}",
        )
        need(
            all(step or count == 1 for step, count in view.dims),
            f"{what} writes to {view.tile.name}, which is repeated; only a source may be",
        )

    def _like(self, dst: TileView, x: TileView, what: str) -> None:
        need(
            (dst.partitions, dst.elements) == (x.partitions, x.elements),
            f"{what} needs the same shape on both sides: {dst.tile.name} is {dst.shape}, {x.tile.name} is {x.shape}",
        )

    def _scalar(self, value: Scalar, slot: int, beside: TileView, what: str, *, bits: bool = False) -> dict[str, Any]:
        """Fields of operand a (slot 0) or b (slot 1)."""
        if isinstance(value, TileView):
            self._column(value, beside, f"operand {'ab'[slot]} of {what}")
            return {f"column{slot}": True, f"imm{slot}": value.offset}
        if bits:
            whole = isinstance(value, int | np.integer) and -(1 << 31) <= value < 1 << 32
            need(whole, f"{what} works on bits, so its constant must be a whole number of 32 bits, not {value!r}")
            return {f"imm{slot}": int(value) & 0xFFFFFFFF}
        return {f"imm{slot}": self._bits(value, what)}

    @staticmethod
    def _bits(value: float, what: str) -> int:
        try:
            with np.errstate(over="ignore"):
                return int(np.float32(value).view(np.uint32))
        except (TypeError, ValueError, OverflowError):
            raise KernelError(f"{what} needs a number or a column of SBUF, not {value!r}") from None

    def _column(self, view: TileView, beside: TileView, what: str) -> None:
        """A column is read, or the accumulator stored, on the partitions of another operand."""
        need(
            view.tile.space == Space.SBUF and view.dtype == "fp32" and view.elements == 1,
            f"{what} must be one fp32 column of SBUF; {view.tile.name} has {view.elements} of {view.dtype} in "
            f"{view.tile.space.name}",
        )
        need(
            (view.start, view.partitions) == (beside.start, beside.partitions),
            f"{what}, {view.tile.name}, is on {view.partitions} partitions from {view.start}; it must be on the "
            f"{beside.partitions} from {beside.start} of {beside.tile.name}",
        )

    def _accumulator(
        self,
        dst: TileView,
        x: TileView,
        reduce: str | None,
        init: Scalar | None,
        store: TileView | None,
        what: str,
    ) -> dict[str, Any]:
        """Fields for the accumulator; `init` is what LOAD_REDUCE starts from."""
        known = [name for name in _REDUCE if name not in (None, "idle")]
        need(reduce in _REDUCE, f"reduce is None or one of {', '.join(map(str, known))}, not {reduce!r}")
        kind = _REDUCE[reduce]
        need(
            (init is not None) == (kind == Reduce.LOAD_REDUCE),
            f"{what} takes init with reduce='load_reduce' and not without",
        )
        if kind == Reduce.IDLE:
            need(store is None, f"{what} has nothing to store without reduce")
            return {}
        need(
            (dst.start, dst.partitions) == (x.start, x.partitions),
            f"{what} reduces, so {dst.tile.name} and {x.tile.name} must be on the same partitions",
        )
        fields: dict[str, Any] = {"reduce": kind}
        if store is not None:
            self._column(store, dst, f"the accumulator's place of {what}")
            fields |= {"store": True, "imm2": store.offset}
        return fields

    def _send(
        self,
        opcode: Opcode,
        dst: TileView | None,
        sources: tuple[TileView, ...],
        fields: dict[str, Any],
        *,
        columns: Iterable[Scalar | None] = (),
        store: TileView | None = None,
        writes_last: bool = False,
    ) -> None:
        """Issue an instruction. `writes_last`: it writes when it has read everything."""
        what = opcode.name.lower()
        if len(sources) == 2:
            need(
                any(view.tile.space == Space.SBUF for view in sources),
                f"{what} reads {sources[0].tile.name} and {sources[1].tile.name}; only one source may lie in PSUM",
            )
        for view in (*sources, *((dst,) if dst is not None else ())):
            need(
                view.elements <= ELEMENTS_MAX,
                f"{what} takes at most {ELEMENTS_MAX} elements of a partition, not the {view.elements} of "
                f"{view.tile.name}",
            )
        accesses = [access(view, False) for view in sources]
        accesses += [access(view, False) for view in columns if isinstance(view, TileView)]
        patterns = {f"src{i}": self._k.pattern(view, "source") for i, view in enumerate(sources)}
        if dst is not None:
            patterns["dst"] = self._k.pattern(dst, "destination")
            accesses.append(access(dst, True))
            for view in sources:
                same = (view.tile, view.offset, view.dims) == (dst.tile, dst.offset, dst.dims)
                need(
                    writes_last or same or not meet(view, dst),
                    f"{what} writes elements of {dst.tile.name} that it reads elsewhere; source and destination must "
                    f"be the same or apart",
                )
        if store is not None:
            accesses.append(access(store, True))
        self._k.issue(self.queue, opcode, accesses=tuple(accesses), source=caller(), **patterns, **fields)
