"""Which banks of PSUM matmuls and transposes that have not retired write, by where their rows leave the array."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import psum_element_bits
from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.config import Config

__all__ = ["BankWatch"]


class BankWatch(wiring.Component):
    """`banks` of the destination `pattern`, all from its lowest to its highest element, and whether they `clash`: an
    instruction that has entered and not left with another `exit` writes one. Combinational; `enter` and `leave` count.

    Exits are those of the row groups for sums, then those for transposes. Rows of one exit leave in the order of the
    program; those of two have no order, and a bank takes one row a cycle.
    """

    def __init__(self, cfg: Config, depth: int):
        self.cfg = cfg
        self.depth = depth
        banks = cfg.psum.banks
        self.layout = {"banks": banks}
        exits = range(2 * cfg.tensor.groups)
        # instructions by bank and exit; seen by proofs too
        self.used = [[Signal(range(depth + 2), name=f"used{b}_{e}") for e in exits] for b in range(banks)]
        super().__init__(
            {
                "pattern": In(PATTERN_LAYOUT),
                "exit": In(exits),
                "enter": In(1),
                "banks": Out(banks),
                "clash": Out(1),
                "leave": In(1),
                "leave_exit": In(exits),
                "leave_banks": In(banks),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        bits = psum_element_bits(cfg)
        in_bank = ceil_log2(cfg.psum.bank_bytes // 4)
        first = Signal(bits)
        last = Signal(bits)
        spans = [
            (self.pattern[f"step{k}"].as_unsigned()[:bits] * (self.pattern[f"count{k}"] - 1)[:bits])[:bits]
            for k in range(DIMENSIONS)
        ]
        downward = [
            self.pattern[f"step{k}"][-1]
            & ~fault("of a pattern that goes down the banks behind its first element are watched")
            for k in range(DIMENSIONS)
        ]
        offset = self.pattern.offset[2:]
        m.d.comb += [
            first.eq(offset + sum(Mux(down, span, 0) for span, down in zip(spans, downward, strict=True))),
            last.eq(offset + sum(Mux(down, 0, span) for span, down in zip(spans, downward, strict=True))),
        ]
        low, high = first[in_bank:], last[in_bank:]
        m.d.comb += [
            self.banks[b].eq(
                (low <= b) & (Mux(fault("banks behind that of the first element are not watched"), low, high) >= b)
            )
            for b in range(cfg.psum.banks)
        ]
        clashes = []
        for b in range(cfg.psum.banks):
            for e in range(2 * cfg.tensor.groups):
                used = self.used[b][e]
                more = self.enter & self.banks[b] & (self.exit == e)
                less = self.leave & self.leave_banks[b] & (self.leave_exit == e)
                m.d.sync += used.eq(used + more - less)
                with m.If(fault("a bank is free when the first of its matmuls has retired") & less):
                    m.d.sync += used.eq(more)
                clashes.append(self.banks[b] & (used != 0) & (self.exit != e))
        m.d.comb += self.clash.eq(Cat(*clashes).any())
        return m
