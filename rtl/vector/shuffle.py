"""SHUFFLE: every partition of a block takes the element of any partition of its block."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.isa import SHUFFLE_KEEP, block

__all__ = ["MASK_BITS", "Shuffle"]

MASK_BITS = 6


class Shuffle(wiring.Component):
    """out[j] = x[mask[j]] within each block of `size` partitions, isa.block(P); 32 raw bits each.

    `touched[j]` is 0 where mask[j] is SHUFFLE_KEEP. `mask` stays through an instruction.

    Timing: a beat a cycle, `out_valid` and `done` (of the beat with `last`) one cycle later.
    """

    def __init__(self, cfg: Config, size: int | None = None):
        self.cfg = cfg
        self.size = block(cfg.partitions) if size is None else size
        wide = 32 * cfg.partitions
        super().__init__(
            {
                "mask": In(MASK_BITS * self.size),
                "valid": In(1),
                "last": In(1),
                "x": In(wide),
                "touched": Out(cfg.partitions),
                "out_valid": Out(1),
                "out": Out(wide),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        q = self.size
        held = Signal(32 * self.cfg.partitions, reset_less=True)
        m.d.sync += [self.out_valid.eq(self.valid), self.done.eq(self.valid & self.last)]
        m.d.comb += self.out.eq(held)
        half = Signal(range(q))
        m.d.comb += half.eq(~(fault("the upper half of a block cannot be reached") << (len(half) - 1)))
        for p in range(self.cfg.partitions):
            j = p % q
            base = 32 * (p - j)
            entry = self.mask[MASK_BITS * j : MASK_BITS * (j + 1)]
            here = self.x[base : base + 32 * q]
            if base:
                first = Signal(32 * q, name=f"block{p}")
                m.d.comb += first.eq(here)
                with m.If(fault("all blocks take from the first one")):
                    m.d.comb += first.eq(self.x[: 32 * q])
                here = first
            keep = entry == SHUFFLE_KEEP
            m.d.comb += self.touched[p].eq(~keep | fault("untouched partitions are written"))
            with m.If(self.valid & ~keep):
                m.d.sync += held[32 * p : 32 * p + 32].eq(here.word_select((entry & half)[: len(half)], 32))
        return m
