"""Check of a whole descriptor before its first byte moves."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import ROW_BYTES_BITS
from rtl.base.fault import fault
from rtl.base.layouts import ADDRESS_LAYOUT, DESCRIPTOR_LAYOUT, layout
from rtl.contract.config import Config
from rtl.contract.isa import Cause, Update
from rtl.contract.link import SIGNAL
from rtl.contract.memmap import CoreId, Space
from rtl.dma.fabric.away_signals import AWAY, AWAY_SIGNAL
from rtl.dma.layouts import SPACE_LSB, job_layout, outcome_layout, slot_bits
from rtl.dma.rings.descriptor_rules import DescriptorRules
from rtl.dma.rings.extent import Extent
from rtl.dma.rings.intake import candidate_layout

__all__ = ["Check"]

_SIDES = ("source", "destination")


class Check(wiring.Component):
    """One descriptor at a time: form, core and space of both ends, what a sum may be, reach of both ends, signal.

    With a link `away_signal` is that of a copy inside the core for another one; its outcome's update is then AWAY.

    The first rule broken gives the cause, in that order (verif/golden/dma.py says the same). A good
    descriptor leaves at `job`; `report` pulses when it does, or when one is refused (`refused`), with `slot`
    and `outcome`.
    Timing: about 8 cycles and one for every further four bits of the counts.
    """

    def __init__(self, cfg: Config, *, link: bool = False):
        self.cfg = cfg
        self.link = link
        super().__init__(
            {
                "core_id": In(CoreId.BITS),
                "candidate": In(stream.Signature(candidate_layout(cfg))),
                "job": Out(stream.Signature(job_layout(cfg, link=link))),
                "report": Out(1),
                "refused": Out(1),
                "slot": Out(slot_bits(cfg)),
                "outcome": Out(outcome_layout()),
                "busy": Out(1),
                **({"away_signal": Out(AWAY_SIGNAL)} if link else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        word = Signal(DESCRIPTOR_LAYOUT)
        slot = Signal(slot_bits(cfg))
        reach: dict[str, Extent] = {}
        for side in _SIDES:
            m.submodules[f"{side}_extent"] = reach[side] = Extent()
        cause = Signal(8)
        address = Signal(64)
        fits = Signal(2)
        dimension = Signal(2)
        begin = Signal()  # both extents take `dimension`

        spaces = {side: View(ADDRESS_LAYOUT, getattr(word, side)).space for side in _SIDES}
        rules = DescriptorRules(cfg, word, self.core_id, link=self.link)
        length = Signal(ROW_BYTES_BITS)
        m.d.comb += length.eq(Mux(fault("the last row may leave its memory by its own length"), 0, word.row_bytes))

        for side in _SIDES:
            m.d.comb += reach[side].start.eq(begin)
            with m.Switch(dimension):
                for n in range(3):
                    with m.Case(n):
                        m.d.comb += [
                            reach[side].count.eq(rules.count(side, n)),
                            reach[side].step.eq(getattr(word, f"{side}_step{n}")),
                        ]

        of_index = Signal(64)  # the address of the first one
        m.d.comb += of_index.eq((self.core_id << CoreId.LSB) | (Space.SBUF << SPACE_LSB) | (word.index << 2))

        def refuse(why: Cause, at: Value | int) -> None:
            m.d.sync += [cause.eq(why), address.eq(at)]

        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += self.candidate.ready.eq(1)
                with m.If(self.candidate.valid):
                    m.d.sync += [
                        word.eq(self.candidate.payload.word),
                        slot.eq(self.candidate.payload.slot),
                        dimension.eq(0),
                        cause.eq(Cause.NONE),
                        address.eq(self.candidate.payload.word.source),
                    ]
                    m.d.comb += [reach[side].clear.eq(1) for side in _SIDES]
                    m.next = "FORM"
            with m.State("FORM"):
                m.d.comb += begin.eq(1)
                m.d.sync += dimension.eq(1)
                m.next = "REACH"
                with m.If(rules.malformed()):
                    refuse(Cause.BAD_DESCRIPTOR, 0)
                    m.next = "END"
                for side in _SIDES:
                    at = getattr(word, side)
                    with m.Elif(rules.unreachable(side)):
                        refuse(Cause.NO_ROUTE, at)
                        m.next = "END"
                    with m.Elif((spaces[side] != Space.HBM) & (spaces[side] != Space.SBUF)):
                        refuse(Cause.BAD_SPACE, at)
                        m.next = "END"
                with m.Elif(rules.adds() & (spaces["destination"] == Space.HBM)):
                    refuse(Cause.BAD_SPACE, word.destination)
                    m.next = "END"
                if self.link:
                    with m.Elif(rules.adds() & rules.foreign(word.source)):
                        refuse(Cause.NO_ROUTE, word.source)
                        m.next = "END"
                for side in _SIDES:
                    with m.Elif(rules.misaligned(side) & ~fault("the alignment of a sum is not checked")):
                        refuse(Cause.MISALIGNED, getattr(word, side))
                        m.next = "END"
                for side in _SIDES if self.link and cfg.dma.indirect else ():
                    with m.Elif(rules.chooses() & rules.foreign(getattr(word, side))):
                        refuse(Cause.NO_ROUTE, getattr(word, side))
                        m.next = "END"
            with m.State("REACH"):
                with m.If(~reach["source"].busy & ~reach["destination"].busy):
                    with m.If(dimension == 3):
                        m.d.sync += fits.eq(Cat(rules.fits(side, reach[side], length) for side in _SIDES))
                        m.next = "JUDGE"
                    with m.Else():
                        m.d.comb += begin.eq(1)
                        m.d.sync += dimension.eq(dimension + 1)
            with m.State("JUDGE"):
                m.next = "END"
                with m.If(~fits[0]):
                    refuse(Cause.OUT_OF_RANGE, word.source)
                with m.Elif(~fits[1]):
                    refuse(Cause.OUT_OF_RANGE, word.destination)
                if cfg.dma.indirect:
                    with m.Elif(rules.chooses() & ~rules.indices()[1]):
                        refuse(Cause.OUT_OF_RANGE, of_index)
                with m.Elif((word.signal_update != Update.NONE) & ~fault("the signal's address is not checked")):
                    with m.If(rules.signal_unreachable()):
                        refuse(Cause.NO_ROUTE, word.signal_address)
                    with m.Elif(rules.no_semaphore()):
                        refuse(Cause.BAD_SEMAPHORE, word.signal_address)
            with m.State("END"):
                m.d.comb += [
                    self.refused.eq(cause != Cause.NONE),
                    self.job.valid.eq(cause == Cause.NONE),
                    self.report.eq(self.refused | self.job.ready),
                ]
                with m.If(self.report):
                    m.next = "IDLE"
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))

        if cfg.dma.indirect:
            chosen = self.job.payload.indices
            m.d.comb += [
                chosen.indirect.eq(word.indirect),
                chosen.skips.eq(word.index_skips),
                chosen.down.eq(word.index_down),
                chosen.place.eq(word.index),
                chosen.total.eq(rules.indices()[0]),
                chosen.rows.eq(word.table_rows),
            ]
        job = self.job.payload
        m.d.comb += [
            job.slot.eq(slot),
            job.class_.eq(word.class_),
            job.from_sbuf.eq(spaces["source"] == Space.SBUF),
            job.to_sbuf.eq(spaces["destination"] == Space.SBUF),
            job.source.eq(word.source),
            job.destination.eq(word.destination),
            job.bytes.eq(word.row_bytes),
            job.add.eq(word.add),
            *(job.count[n].eq(getattr(word, f"count{n}")) for n in range(3)),
            *(job.source_step[n].eq(getattr(word, f"source_step{n}")) for n in range(3)),
            *(job.destination_step[n].eq(getattr(word, f"destination_step{n}")) for n in range(3)),
            self.slot.eq(slot),
            self.outcome.cause.eq(cause),
            self.outcome.address.eq(address),
            self.outcome.destination.eq(word.destination),
            self.outcome.signal_index.eq(word.signal_address >> 2),
            self.outcome.signal_update.eq(word.signal_update),
            self.outcome.signal_value.eq(word.signal_value),
        ]
        if self.link:
            leaves = rules.foreign(word.signal_address) & (word.signal_update != Update.NONE)
            signals = leaves & rules.foreign(word.destination)
            signal = View(layout(SIGNAL), job.signal)
            m.d.comb += [
                job.away.eq(Cat(rules.foreign(word.destination), rules.foreign(word.source))),
                job.far.eq(Mux(job.away[0], word.destination, word.source)[40:]),
                job.signals.eq(signals),
                signal.value.eq(word.signal_value),
                signal.index.eq(word.signal_address >> 2),
                signal.update.eq(word.signal_update),
            ]
            m.d.comb += [
                self.away_signal.class_.eq(word.class_),
                self.away_signal.address.eq(word.signal_address),
                self.away_signal.signal.eq(signal),
            ]
            with m.If(signals):  # the last packet brings it
                m.d.comb += self.outcome.signal_update.eq(Update.NONE)
            with m.Elif(leaves & ~fault("a signal of a copy inside that is for another core is done here")):
                m.d.comb += self.outcome.signal_update.eq(AWAY)
        return m
