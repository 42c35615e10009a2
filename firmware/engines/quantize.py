"""k.vector.quantize_mx: blocks of 8 partitions x 4 elements become MX elements and scales."""

from dataclasses import replace

from firmware.arguments import checked
from firmware.engines.base import access, caller, need
from firmware.engines.elementwise import ElementwiseEngine, meet
from firmware.hazards import Access
from firmware.views import TileView
from rtl.contract.formats import FORMATS
from rtl.contract.isa import MX_ROWS, Opcode, ScaleRule, block, mx_scale_partition
from rtl.contract.memmap import Space
from rtl.contract.rule import ELEMENTS_MAX, IMMEDIATES

__all__ = ["QuantizingEngine"]

_RULES = {"ocp": ScaleRule.OCP, "emax-1": ScaleRule.EMAX_1}
_FOUR = 4  # elements of a column
_SLOTS = 4
_WHAT = "quantize_mx"


@checked
class QuantizingEngine(ElementwiseEngine):
    """An engine with QUANTIZE_MX."""

    def quantize_mx(
        self,
        dst: TileView,
        x: TileView,
        scales: TileView,
        *,
        fmt: str | None = None,
        rule: str = "ocp",
        slot: int = 0,
    ) -> None:
        """dst = MX elements of x, bf16 or fp16; scales = an E8M0 byte for each block of 8 partitions x 4 elements.

        dst is e4m3fn or e5m2, as many as x; with fmt="e2m1" uint8, two codes each, the first one low. `scales`: uint8,
        a column for four elements, on whole groups of Q = isa.block(P) partitions; written on the partitions that
        isa.mx_scale_partition gives the rows of dst in `slot` 0 to 3, so that four tensors share a tile.
        """
        kind = fmt or dst.dtype
        need(
            kind in ("e4m3fn", "e5m2", "e2m1"),
            f"{_WHAT} writes e4m3fn, e5m2 or, with fmt='e2m1', codes of four bits, not {kind}",
        )
        need(
            dst.dtype == ("uint8" if kind == "e2m1" else kind),
            f"{_WHAT} to {kind} needs a tile of {'uint8' if kind == 'e2m1' else kind}; {dst.tile.name} is {dst.dtype}",
        )
        need(x.dtype in ("bf16", "fp16"), f"{_WHAT} reads bf16 or fp16, not {x.dtype}, the format of {x.tile.name}")
        need(rule in _RULES, f"the rule of {_WHAT} is {' or '.join(_RULES)}, not {rule!r}")
        need(0 <= slot < _SLOTS, f"the slot of {_WHAT} is 0 to {_SLOTS - 1}, not {slot!r}")
        self._shapes(dst, x, scales, kind)
        places = self._places(dst, scales, slot)
        for a, b in ((dst, x), (scales, x), (scales, dst)):
            need(not meet(a, b), f"{_WHAT} needs {a.tile.name} and {b.tile.name} apart")
        columns = x.elements // _FOUR
        target = replace(self._k.pattern(dst, "destination"), dtype=FORMATS[kind].code, dims=((1, columns),))
        place = scales.offset << IMMEDIATES["scales"][0]
        place |= slot << IMMEDIATES["slot"][0] | int(_RULES[rule]) << IMMEDIATES["rule"][0]
        self._k.issue(
            self.queue,
            Opcode.QUANTIZE_MX,
            accesses=(access(x, False), access(dst, True), *places),
            source=caller(),
            src0=self._k.pattern(x, "source"),
            dst=target,
            imm0=place,
        )

    def _shapes(self, dst: TileView, x: TileView, scales: TileView, kind: str) -> None:
        """Blocks are whole, rows in one piece and aligned, and there is room for each result."""
        codes = 2 if kind == "e2m1" else 1  # in an element of dst
        need(
            x.elements % (_FOUR * _FOUR) == 0 and x.elements <= ELEMENTS_MAX,
            f"{_WHAT} takes a multiple of 16 elements, at most {ELEMENTS_MAX}, not the {x.elements} of {x.tile.name}",
        )
        need(
            (dst.partitions, codes * dst.elements) == (x.partitions, x.elements),
            f"{_WHAT} of {x.tile.name}, {x.shape}, gives {x.partitions} x {x.elements // codes}; {dst.tile.name} is "
            f"{dst.shape}",
        )
        need(
            scales.dtype == "uint8" and scales.elements == x.elements // _FOUR,
            f"{_WHAT} of {x.tile.name} gives {x.elements // _FOUR} columns of uint8 scales; {scales.tile.name} has "
            f"{scales.elements} of {scales.dtype}",
        )
        for view, aligned in ((x, 8), (dst, 8 // codes), (scales, 4)):
            need(view.tile.space == Space.SBUF, f"{_WHAT} works in SBUF; {view.tile.name} is in PSUM")
            inner = [(step, count) for step, count in view.dims if count > 1]
            need(
                len(inner) <= 1 and all(step == 1 for step, _ in inner) and view.offset % aligned == 0,
                f"{_WHAT} needs neighbours in one row from a multiple of {aligned} bytes; {view.tile.name} is "
                f"{view.shape} with steps {[step for step, _ in view.dims]} from byte {view.offset}",
            )
        for view in (x, dst):
            need(
                view.start % MX_ROWS == 0 and view.partitions % MX_ROWS == 0,
                f"{_WHAT} works on blocks of {MX_ROWS} partitions; {view.tile.name} is on {view.partitions} from "
                f"{view.start}",
            )

    def _places(self, dst: TileView, scales: TileView, slot: int) -> list[Access]:
        """The partitions of scales that are written."""
        total = self._k.cfg.partitions
        q = block(total)
        rows = range(dst.start, dst.start + dst.partitions, MX_ROWS)
        low, high = rows[0] // q * q, rows[-1] // q * q + q
        need(
            scales.start <= low and high <= scales.start + scales.partitions,
            f"{_WHAT} writes scales on partitions {low} to {high - 1}; {scales.tile.name} is on {scales.partitions} "
            f"from {scales.start}",
        )
        lanes = [mx_scale_partition(row, slot, total) for row in rows]
        return [access(replace(scales, start=lane, partitions=1), True) for lane in lanes]
