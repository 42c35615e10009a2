"""The adding path in front of PSUM: one FP32 adder a partition, in the form that Fp32AddLanes is given."""

from amaranth.hdl import C, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.base.memory_port import psum_element_bits
from rtl.contract.config import Config
from rtl.contract.timing import PSUM_ADD_CYCLES
from rtl.numeric.fp32.add_lanes import Fp32AddLanes

__all__ = ["MINUS_ZERO", "PsumAdder"]

MINUS_ZERO = 0x8000_0000
"""x + -0 is x for every x, -0 included."""


class PsumAdder(wiring.Component):
    """A row comes with `valid`; `old` is due one cycle later, if `adds` then the old row of `old_bank`, else
    -0 in every partition: an overwrite is an add too and takes the same time. The row to write comes out
    after PSUM_ADD_CYCLES with `write_valid`, rounded as `rounding` and `random` say; a NaN in it is the canonical
    one. `old_odd`: the old row is the
    second of its word."""

    def __init__(self, cfg: Config, form: str = "structural"):
        self.cfg = cfg
        self.form = form
        wide = 32 * cfg.partitions
        element = psum_element_bits(cfg)
        super().__init__(
            {
                "valid": In(1),
                "element": In(element),
                "accumulate": In(1),
                "partitions": In(cfg.partitions),
                "data": In(wide),
                "rounding": In(2),
                "random": In(32),
                "adds": Out(1),
                "old": In(wide),
                "old_bank": Out(range(cfg.psum.banks)),
                "old_odd": Out(1),
                "write_valid": Out(1),
                "write_element": Out(element),
                "write_partitions": Out(cfg.partitions),
                "write_data": Out(wide),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        row_bits = ceil_log2(cfg.psum.bank_bytes // 4)
        assert PSUM_ADD_CYCLES == 1 + Fp32AddLanes.LATENCY
        add = Signal()
        due = Signal()  # the old row is here
        valid, element, partitions = self.valid, self.element, self.partitions
        for stage in range(PSUM_ADD_CYCLES):
            next_valid = Signal(name=f"valid{stage}")
            next_element = Signal.like(element, name=f"element{stage}", reset_less=True)
            next_partitions = Signal.like(partitions, name=f"partitions{stage}", reset_less=True)
            m.d.sync += next_valid.eq(valid)
            with m.If(valid):
                m.d.sync += [next_element.eq(element), next_partitions.eq(partitions)]
            if stage == 0:
                m.d.comb += [
                    due.eq(next_valid),
                    self.adds.eq(next_valid & add),
                    self.old_bank.eq(next_element[row_bits:]),
                    self.old_odd.eq(next_element[0]),
                ]
            valid, element, partitions = next_valid, next_element, next_partitions
        m.d.comb += [
            self.write_valid.eq(valid),
            self.write_element.eq(element),
            self.write_partitions.eq(
                Mux(fault("partitions outside the mask of a sum are written"), C(-1, cfg.partitions), partitions)
            ),
        ]

        new = Signal(32 * cfg.partitions, reset_less=True)
        rounding = Signal(2)
        random = Signal(32)
        with m.If(self.valid):
            m.d.sync += [
                rounding.eq(Mux(fault("sums are not rounded to BF16"), 0, self.rounding)),
                random.eq(self.random),
            ]
            m.d.sync += [new.eq(self.data), add.eq(self.accumulate & ~fault("an add overwrites its sum"))]
        m.submodules.lanes = lanes = Fp32AddLanes(cfg.partitions, self.form)
        m.d.comb += [
            lanes.valid.eq(due),
            lanes.a.eq(self.old),
            lanes.b.eq(new),
            lanes.rounding.eq(rounding),
            lanes.random.eq(random),
            self.write_data.eq(lanes.out),
        ]
        return m
