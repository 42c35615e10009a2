"""Encoder: puts CRC and FEC into the last bytes of each flit that passes."""

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault, fault_number
from rtl.base.placed import needs_source
from rtl.base.xor_map import XorMap
from rtl.contract.link import CRC_AT, CRC_BYTES, CRC_ORDER, FEC_AT, FEC_GROUPS, FEC_SPAN
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.link.codec.codec import FORM_ERROR, FORMS, without_tail
from rtl.link.codec.crc import Crc
from rtl.link.codec.fec import Fec
from rtl.link.codec.galois import FEC_FIELD, byte_columns, rows_of

__all__ = ["Encoder"]

NATIVE_FAULTS = {
    "native encoder: the bytes of the CRC stand in the other order": 1,
    "native encoder: groups 1 and 2 of the FEC are swapped": 2,
    "native encoder: the sums of a flit go on into the next": 3,
    "native encoder: a beat that waits is overwritten by the next": 4,
}
"""Planted faults and their numbers in native_encoder.cpp."""


class Encoder(wiring.Component):
    """Flits in beats; bytes 242 to 255 are replaced, the others pass. `order`: see link.CRC_ORDER.

    Timing: a beat leaves one cycle after it was taken, a beat a cycle; `i.ready` depends on `o.ready`.
    `first` begins a flit, whatever was before. Reset: the beat that waits is lost.
    Errors: ValueError for an unknown form.
    """

    LATENCY = 1

    def __init__(self, cfg: LinkConfig, form: str = "structural", order: str = CRC_ORDER):
        if form not in FORMS:
            raise ValueError(FORM_ERROR.format(form))
        self.cfg = cfg
        self.form = form
        self.order = order
        beat = stream.Signature(beat_layout(cfg))
        super().__init__({"i": In(beat), "o": Out(beat)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.form == "native":
            self._native(m)
        else:
            self._structural(m)
        return m

    def _native(self, m: Module) -> None:
        needs_source("plexus_native_encoder.sv", "native_encoder.cpp")
        m.submodules.model = Instance(
            "plexus_native_encoder",
            p_BYTES=self.cfg.beat_bytes,
            p_LOW_FIRST=int(self.order != "high_first"),
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_plant=fault_number(NATIVE_FAULTS),
            i_i_valid=self.i.valid,
            o_i_ready=self.i.ready,
            i_i_first=self.i.payload.first,
            i_i_last=self.i.payload.last,
            i_i_data=self.i.payload.data,
            o_o_valid=self.o.valid,
            i_o_ready=self.o.ready,
            o_o_first=self.o.payload.first,
            o_o_last=self.o.payload.last,
            o_o_data=self.o.payload.data,
        )

    def _structural(self, m: Module) -> None:
        beat = self.i.payload
        m.submodules.crc = crc = Crc(self.cfg, check=False, order=self.order)
        m.submodules.fec = fec = Fec(self.cfg)
        taken, first = Signal(), Signal()
        clean = Signal(len(beat.data))
        m.d.comb += [
            self.i.ready.eq(
                ~self.o.valid | self.o.ready | fault("a beat that waits in the encoder is overwritten by the next")
            ),
            taken.eq(self.i.valid & self.i.ready),
            first.eq(beat.first & ~fault("the encoder's sums of a flit go on into the next")),
            clean.eq(without_tail(self.cfg, beat, CRC_AT)),
        ]
        for part in (crc, fec):
            m.d.comb += [part.enable.eq(taken), part.first.eq(first), part.data.eq(clean)]

        sums = Signal.like(crc.sums)
        m.d.comb += sums.eq(crc.sums)
        with m.If(fault("the bytes of the CRC stand in the other order")):
            m.d.comb += sums.eq(Cat(crc.sums.word_select(n, 8) for n in reversed(range(CRC_BYTES))))
        check, parity = self._with_crc(m, sums, fec)
        tail = Signal(8 * (CRC_BYTES + 2 * FEC_GROUPS))
        m.d.comb += tail.eq(Cat(sums, check, parity))
        with m.If(fault("the encoder swaps groups 1 and 2 of the FEC")):
            m.d.comb += tail.eq(Cat(sums, *(half[at : at + 8] for half in (check, parity) for at in (8, 0, 16))))

        with m.If(taken):
            kept = len(beat.data) - len(tail)
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.eq(beat),
            ]
            with m.If(beat.last):
                m.d.sync += self.o.payload.data[kept:].eq(tail)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

    def _with_crc(self, m: Module, sums: Value, fec: Fec) -> tuple[Value, Value]:
        """Check and parity bytes of the whole flit: what the bytes of the CRC add to those of the others."""
        columns: list[int] = []
        parity: list[Value] = [fec.parity.word_select(n, 8) for n in range(FEC_GROUPS)]
        for at in range(CRC_AT, FEC_AT):
            by = FEC_FIELD.power(FEC_SPAN - at // FEC_GROUPS)
            place = (at - FEC_AT) % FEC_GROUPS  # of the group's bytes among those of the FEC
            columns += byte_columns(lambda value, by=by, place=place: FEC_FIELD.mul(value, by) << (8 * place))
            parity[place] = parity[place] ^ sums.word_select(at - CRC_AT, 8)
        m.submodules.crc_check = add = XorMap(len(sums), rows_of(len(fec.check), columns))
        m.d.comb += add.i.eq(sums)
        check, whole = Signal(len(fec.check)), Signal(len(fec.parity))
        m.d.comb += [check.eq(fec.check ^ add.o), whole.eq(Cat(*parity))]
        return check, whole
