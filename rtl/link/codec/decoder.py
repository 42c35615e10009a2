"""Decoder: repairs flits by their FEC, judges them by their CRC."""

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault, fault_number
from rtl.base.placed import needs_source
from rtl.base.ram import Ram
from rtl.contract.link import CRC_AT, CRC_ORDER, DLP_AT, DLP_BYTES, FEC_AT, FEC_GROUPS, FLIT_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.link.codec.codec import FIXES, FORM_ERROR, FORMS, without_tail
from rtl.link.codec.crc import Crc
from rtl.link.codec.fec import Fec
from rtl.link.codec.locate import Locate

__all__ = ["Decoder"]

NATIVE_FAULTS = {
    "native decoder: groups 1 and 2 of the FEC are swapped": 1,
    "native decoder: the pad of a short group is repaired": 2,
    "native decoder: a wrong check byte cannot be repaired": 3,
    "native decoder: the CRC is not looked at": 4,
    "native decoder: repairs do not reach the syndromes of the CRC": 5,
    "native decoder: a flit to be refused is judged by its codes": 6,
    "native decoder: the DLP leaves as it came": 7,
    "native decoder: refused flits are repaired too": 8,
    "native decoder: groups of refused flits are counted": 9,
    "native decoder: sums of a flit go on into the next": 10,
}
"""Planted faults and their numbers in native_decoder.cpp."""


class Decoder(wiring.Component):
    """Flits in, flits out, each with a verdict; nothing holds it back.

    A flit is `cfg.beats` beats from `first` to `last`, with any pauses; what is shorter or longer leaves
    nothing. `i_refuse` with the last beat refuses the flit whatever its codes say. `o` shows the repaired
    bytes of a good flit, the received ones of a refused one. `o_good`, `o_dlp` (byte 236 in bits 47:40;
    repaired if good), `o_groups` (repaired ones; 0 if refused) and `o_fix` (by group; located bytes of
    refused flits too) hold for all beats of a flit.
    Timing: the first beat leaves 3 cycles after the last was taken, the others follow without a pause.
    Reset: flits on their way are lost. Where `o_valid` is 0 the other outputs have no meaning.
    `order`: see link.CRC_ORDER. Errors: ValueError for an unknown form.
    """

    DELAY = 3

    def __init__(self, cfg: LinkConfig, form: str = "structural", order: str = CRC_ORDER):
        if form not in FORMS:
            raise ValueError(FORM_ERROR.format(form))
        self.cfg = cfg
        self.form = form
        self.order = order
        super().__init__(
            {
                "i_valid": In(1),
                "i": In(beat_layout(cfg)),
                "i_refuse": In(1),
                "o_valid": Out(1),
                "o": Out(beat_layout(cfg)),
                "o_good": Out(1),
                "o_dlp": Out(8 * DLP_BYTES),
                "o_groups": Out(2),
                "o_fix": Out(FIXES),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.form == "native":
            self._native(m)
        else:
            self._structural(m)
        return m

    def _native(self, m: Module) -> None:
        needs_source("plexus_native_decoder.sv", "native_decoder.cpp")
        m.submodules.model = Instance(
            "plexus_native_decoder",
            p_BYTES=self.cfg.beat_bytes,
            p_LOW_FIRST=int(self.order != "high_first"),
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_plant=fault_number(NATIVE_FAULTS),
            i_i_valid=self.i_valid,
            i_i_first=self.i.first,
            i_i_last=self.i.last,
            i_i_refuse=self.i_refuse,
            i_i_data=self.i.data,
            o_o_valid=self.o_valid,
            o_o_first=self.o.first,
            o_o_last=self.o.last,
            o_o_data=self.o.data,
            o_o_good=self.o_good,
            o_o_dlp=self.o_dlp,
            o_o_groups=self.o_groups,
            o_o_fix=self.o_fix,
        )

    def _structural(self, m: Module) -> None:
        beats = self.cfg.beats
        bits = 8 * self.cfg.beat_bytes
        tail = bits - 8 * (FLIT_BYTES - DLP_AT)  # of the DLP in the last beat

        # Beats: which of its flit, where it is kept, what it adds to the sums.
        index = Signal(range(beats + 1), init=beats)  # beats: waiting for a first one
        here = Signal.like(index)
        half = Signal()  # flits are kept in the two halves of the buffer in turn
        complete = Signal()
        m.d.comb += [
            here.eq(Mux(self.i.first, 0, index)),
            complete.eq(self.i_valid & self.i.last & (here == beats - 1)),
        ]
        m.submodules.buffer = buffer = Ram(bits, 2 * beats)
        m.d.comb += [
            buffer.write_en.eq(self.i_valid & (here != beats)),
            buffer.write_mask.eq(1),
            buffer.write_address.eq(Cat(here[: len(buffer.write_address) - 1], half)),
            buffer.write_data.eq(self.i.data),
        ]
        m.submodules.crc = crc = Crc(self.cfg, check=True)
        m.submodules.fec = fec = Fec(self.cfg)
        clean = Signal(bits)
        m.d.comb += clean.eq(without_tail(self.cfg, self.i, FEC_AT))
        for part in (crc, fec):
            m.d.comb += [
                part.enable.eq(self.i_valid),
                part.first.eq(self.i.first & ~fault("the decoder's sums of a flit go on into the next")),
                part.data.eq(clean),
            ]
        if self.order != "high_first":
            at = tail + 8 * (CRC_AT - DLP_AT)
            turned = Cat(clean[:at], *(clean[n : n + 8] for n in reversed(range(at, at + 64, 8))), clean[at + 64 :])
            m.d.comb += crc.data.eq(Mux(self.i.last, turned, clean))

        # Cycle 1 after the last beat: syndromes stand in registers; locate.
        ended, refuse, ended_half = Signal(), Signal(), Signal()
        syndromes = Signal(len(crc.sums))
        check, parity = Signal(len(fec.check)), Signal(len(fec.parity))  # groups 1, 2, 0
        dlp = Signal(8 * DLP_BYTES)  # byte 236 lowest
        m.d.sync += ended.eq(complete)
        with m.If(self.i_valid):
            m.d.sync += index.eq(Mux((here == beats) | self.i.last, beats, here + 1))
        received = self.i.data[-16 * FEC_GROUPS :]
        with m.If(complete):
            m.d.sync += [
                half.eq(~half),
                ended_half.eq(half),
                refuse.eq(self.i_refuse & ~fault("a flit to be refused is judged by its codes")),
                syndromes.eq(crc.sums),
                check.eq(fec.check ^ received[: 8 * FEC_GROUPS]),
                parity.eq(fec.parity ^ received[8 * FEC_GROUPS :]),
                dlp.eq(self.i.data[tail : tail + 8 * DLP_BYTES]),
            ]
        swap = fault("the decoder swaps groups 1 and 2 of the FEC")
        located: list[Locate] = []
        for group in range(FEC_GROUPS):
            m.submodules[f"locate{group}"] = locate = Locate(group, self.order)
            place = (group - FEC_AT) % FEC_GROUPS
            other = ((-group) % FEC_GROUPS - FEC_AT) % FEC_GROUPS
            m.d.comb += [
                locate.check.eq(Mux(swap, check.word_select(other, 8), check.word_select(place, 8))),
                locate.parity.eq(Mux(swap, parity.word_select(other, 8), parity.word_select(place, 8))),
            ]
            located.append(locate)

        # Cycle 2: the verdict.
        judged, judged_half, judged_refuse = Signal(), Signal(), Signal()
        judged_syndromes, judged_dlp = Signal.like(syndromes), Signal.like(dlp)
        m.d.sync += judged.eq(ended)
        with m.If(ended):
            m.d.sync += [
                judged_half.eq(ended_half),
                judged_refuse.eq(refuse),
                judged_syndromes.eq(syndromes),
                judged_dlp.eq(dlp),
            ]
        rest = judged_syndromes
        for locate in located:
            rest = rest ^ Mux(fault("repairs do not reach the syndromes of the CRC"), 0, locate.sums)
        good = Signal()
        groups = Signal(2)
        bad = Cat(locate.bad for locate in located).any()
        m.d.comb += [
            good.eq(~judged_refuse & ~bad & ((rest == 0) | fault("the CRC of a flit is not looked at"))),
            groups.eq(sum(locate.hit for locate in located)),
        ]
        errors = [Signal(8, name=f"error{group}") for group in range(FEC_GROUPS)]
        repair = Signal()
        with m.If(judged):
            m.d.sync += [
                self.o_good.eq(good),
                self.o_groups.eq(Mux(good | fault("groups of refused flits are counted"), groups, 0)),
                repair.eq(good | fault("refused flits are repaired too")),
                *(fix.hit.eq(locate.hit) for fix, locate in zip(self.o_fix, located)),
                *(fix.byte.eq(locate.byte) for fix, locate in zip(self.o_fix, located)),
                *(error.eq(locate.error) for error, locate in zip(errors, located)),
            ]
            for n in range(DLP_BYTES):
                locate = located[(DLP_AT + n) % FEC_GROUPS]
                wrong = (
                    good & locate.hit & (locate.byte == DLP_AT + n) & ~fault("the DLP leaves the decoder as it came")
                )
                fixed = judged_dlp.word_select(n, 8) ^ Mux(wrong, locate.error, 0)
                m.d.sync += self.o_dlp.word_select(DLP_BYTES - 1 - n, 8).eq(fixed)

        # Cycle 3 and on: beats leave.
        leaving = Signal(range(beats))  # beat to be fetched; 0 until a verdict
        fetch, leave_half = Signal(), Signal()
        shown = Signal.like(leaving)
        m.d.comb += [
            fetch.eq(judged | (leaving != 0)),
            buffer.read_en.eq(fetch),
            buffer.read_address.eq(Cat(leaving, Mux(judged, judged_half, leave_half))),
        ]
        m.d.sync += self.o_valid.eq(fetch)
        with m.If(judged):
            m.d.sync += leave_half.eq(judged_half)
        with m.If(fetch):
            m.d.sync += [leaving.eq(leaving + 1), shown.eq(leaving)]
        repairs = Signal(bits)
        for group, (fix, error) in enumerate(zip(self.o_fix, errors)):
            at = Signal(range(self.cfg.beat_bytes), name=f"at{group}")
            m.d.comb += at.eq(fix.byte)
            with m.If(repair & fix.hit & (fix.byte[len(at) :] == shown)):
                m.d.comb += repairs.word_select(at, 8).eq(error)
        m.d.comb += [
            self.o.first.eq(shown == 0),
            self.o.last.eq(shown == beats - 1),
            self.o.data.eq(buffer.read_data ^ repairs),
        ]
