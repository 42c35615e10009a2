"""Aligner: turns units of the source until their bytes stand where the destination wants them."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.dma.layouts import Place, step_layout, unit_layout

__all__ = ["Aligner"]

_DEPTH = 4


class Aligner(wiring.Component):
    """A window of two units of the source, turned by (d - s) mod 16 bytes (see Sequencer).

    `room`: a step decided in this cycle will find a place for what it sends.
    Timing: the step and its data in one cycle, the unit at `unit` in the next; a unit a cycle.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "step_valid": In(1),
                "step": In(step_layout(cfg)),
                "beat": In(8 * cfg.hbm.port_bytes),
                "beat_error": In(1),
                "own": In(128),
                "other": In(128),
                "room": Out(1),
                "unit": Out(stream.Signature(unit_layout(cfg))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.step
        m.submodules.units = units = Fifo(unit_layout(self.cfg), _DEPTH)
        wiring.connect(m, units.o, wiring.flipped(self.unit))

        taken = Signal(128)
        with m.Switch(step.place):
            with m.Case(Place.HBM):
                # A case for each unit: a shift of the whole beat costs a simulator ten times as much.
                with m.Switch(step.unit):
                    for n in range(len(self.beat) // 128):
                        with m.Case(n):
                            m.d.comb += taken.eq(self.beat.word_select(n, 128))
            with m.Case(Place.OWN):
                m.d.comb += taken.eq(self.own)
            with m.Default():
                m.d.comb += taken.eq(self.other)
        turned: Value = taken
        for bit in range(4):
            stage = Signal(128, name=f"turned{bit}")
            m.d.comb += stage.eq(Mux(step.turn[bit], turned.rotate_left(8 << bit), turned))
            turned = stage

        before = Signal(128)
        failed = Signal()  # HBM answered with an error in this row
        fails = Signal()
        with m.If(self.step_valid & step.take):
            m.d.sync += before.eq(turned)
        m.d.comb += fails.eq(failed | (step.take & (step.place == Place.HBM) & self.beat_error))
        with m.If(self.step_valid):
            m.d.sync += failed.eq(fails & ~step.last)

        below = Signal(16)  # bytes that come from the unit before
        mask = Signal(16)
        tail = Mux(fault("the last unit of a row is written whole"), 15, step.tail)
        m.d.comb += [
            below.eq((1 << step.turn) - 1),
            mask.eq((0xFFFF << step.head) & ((2 << tail) - 1)),
            units.i.valid.eq(self.step_valid & step.emit),
            units.i.payload.bytes.eq(mask),
            units.i.payload.to_sbuf.eq(step.to_sbuf),
            units.i.payload.add.eq(step.add),
            units.i.payload.to.eq(step.to),
            units.i.payload.last.eq(step.last),
            units.i.payload.slot.eq(step.slot),
            units.i.payload.read_error.eq(fails),
        ]
        selector = Cat(bit.replicate(8) for bit in below)
        older = Signal(128)
        m.d.comb += [
            older.eq(selector & ~fault("the window forgets the unit before").replicate(128)),
            units.i.payload.data.eq((before & older) | (turned & ~older)),
            self.room.eq(units.level + units.i.valid < _DEPTH),
        ]
        return m
