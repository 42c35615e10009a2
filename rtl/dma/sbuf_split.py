"""A port to all partitions becomes one to each group of a bank."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fifo import Fifo
from rtl.base.memory_port import SbufMoverSignature
from rtl.contract.config import Config
from rtl.dma.fabric.packets import bank_bits, link_config
from rtl.dma.layouts import ADDED_ROWS, lane_bits

__all__ = ["SbufSplit"]


class SbufSplit(wiring.Component):
    """`whole` counts partitions over the core, `group[n]` inside group n * dma.link_movers + `bank`; it asks for no
    others. Timing: combinational; read data come from the group that was asked in the cycle before. Ends of rows that
    are added are told in the order of the rows, one a cycle, whatever the group, at the earliest in the cycle after the
    group has told its own."""

    def __init__(self, cfg: Config, bank: int = 0):
        self.cfg = cfg
        self.groups = range(bank, cfg.dma.engines, cfg.dma.link_movers)
        group = Out(SbufMoverSignature(cfg)).array(len(self.groups))
        super().__init__({"whole": In(SbufMoverSignature(link_config(cfg))), "group": group})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = lane_bits(self.cfg)
        whole = self.whole
        groups = self.group
        skip = bits + bank_bits(self.cfg)
        reads = whole.read_lane[skip:]
        writes = whole.write_lane[skip:]
        asked = Signal(max(1, len(reads)))
        for e, group in enumerate(groups):
            m.d.comb += [
                group.read_valid.eq(whole.read_valid & (reads == e)),
                group.read_lane.eq(whole.read_lane[: len(group.read_lane)]),
                group.read_pair.eq(whole.read_pair),
                group.write_valid.eq(whole.write_valid & (writes == e)),
                group.write_lane.eq(whole.write_lane[: len(group.write_lane)]),
                group.write_pair.eq(whole.write_pair),
                group.write_data.eq(whole.write_data),
                group.write_bytes.eq(whole.write_bytes),
                group.write_add.eq(whole.write_add),
                group.write_last.eq(whole.write_last),
            ]
        with m.If(whole.read_valid):
            m.d.sync += asked.eq(reads)
        m.d.comb += [
            whole.read_ready.eq(Array(g.read_ready for g in groups)[reads]),
            whole.write_ready.eq(Array(g.write_ready for g in groups)[writes]),
            whole.read_data.eq(Array(g.read_data for g in groups)[asked]),
            whole.read_data_valid.eq(Array(g.read_data_valid for g in groups)[asked]),
        ]

        m.submodules.order = order = Fifo(len(asked), ADDED_ROWS)  # groups of the rows whose ends are awaited
        told = Signal(len(groups))  # groups that have told an end that was not passed on
        m.d.comb += [
            order.i.valid.eq(whole.write_valid & whole.write_ready & whole.write_last & (whole.write_add != 0)),
            order.i.payload.eq(writes),
            whole.write_done.eq(order.o.valid & told.bit_select(order.o.payload, 1)),
            order.o.ready.eq(whole.write_done),
        ]
        for e, group in enumerate(groups):
            count = Signal(range(ADDED_ROWS + 1), name=f"told{e}")
            passed = whole.write_done & (order.o.payload == e)
            m.d.comb += told[e].eq(count != 0)
            m.d.sync += count.eq(count + group.write_done - passed)
        return m
