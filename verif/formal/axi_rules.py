"""The rules of AXI4 as far as this machine uses it (rtl.base.axi), as a checker for any proof.

Source: AMBA AXI protocol specification, issue H: A3.2.1 (what is valid stays, unchanged, until ready), A3.4.1 (bursts
do not cross 4 KiB; length, size), A3.2.2 and A3.3 (WLAST on the last beat, answers only to what was asked).
The house's own: bursts are INCR of full-width, aligned beats; no beat of W before its AW is offered.
"""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.axi import AxiReadSignature, AxiSignature, axi_size
from verif.formal.free import drive
from verif.formal.stream_rules import StreamRules

__all__ = ["AxiRules", "in_4_kib"]

_PAGE = 4096
_DUE_BITS = 10  # bursts and beats counted here
_ADDRESS = ("id", "addr", "len", "size", "burst", "qos")


def in_4_kib(address: Value, beats: Value, port_bytes: int) -> Value:
    """Whether a burst of full-width beats from an aligned address stays inside 4 KiB; `beats` is one less."""
    return (address[:12] % port_bytes == 0) & (address[:12] + beats * port_bytes < _PAGE)


class AxiRules(wiring.Component):
    """One bus. `driven`: the manager is the unit under proof and its rules are asserted, the subordinate's assumed;
    else the other way round. `followed`: the id whose answers are counted.

    `reads_due`, `writes_due`: bursts of that id accepted and not answered. `open_bursts`: offered on AW, their last
    beat not sent. WLAST is held against the length of one burst; `pick`, to be driven, says in the first cycle of an
    offer whether it is that. `beat_next`: a beat of it is on W; `beat_id`: its id.
    """

    def __init__(self, axi: Any, port_bytes: int, followed: Value, *, driven: bool = True):
        self.axi = axi
        self.port_bytes = port_bytes
        self.followed = followed
        self.driven = driven
        self.writes = hasattr(axi, "awvalid")
        self.manager = Assert if driven else Assume
        self.subordinate = Assume if driven else Assert
        self.reads_due = Signal(_DUE_BITS)
        self.writes_due = Signal(_DUE_BITS)
        self.open_bursts = Signal(_DUE_BITS)
        self.ahead = Signal(_DUE_BITS)  # bursts whose beats go before those of the burst that is followed
        self.pick = Signal()  # the burst that is offered now may be the one
        self.watched = Signal()  # a burst is followed
        self.left = Signal(8)  # beats of it behind the next one
        self.beat_next = Signal()
        self.beat_id = Signal.like(axi.arid)
        self.kept_id = Signal.like(axi.arid)
        offers = {"ar": _ADDRESS, **({"aw": _ADDRESS, "w": ("data", "strb", "last")} if self.writes else {})}
        self.offers = {channel: self._offer(channel, fields) for channel, fields in offers.items()}
        super().__init__({})

    def _offer(self, channel: str, fields: tuple[str, ...]) -> StreamRules:
        valid, ready, *payload = (getattr(self.axi, f"{channel}{name}") for name in ("valid", "ready", *fields))
        return StreamRules(valid, ready, Cat(payload), assume=not self.driven)

    def free(self, m: Module) -> None:
        """Let the prover drive the far side: the subordinate's outputs, or the manager's."""
        signature = (AxiSignature if self.writes else AxiReadSignature)(self.port_bytes)
        for name, member in signature.members.items():
            if (member.flow == wiring.In) == self.driven:
                drive(m, getattr(self.axi, name))

    def _address(self, m: Module, channel: str) -> tuple[Value, Value]:
        """AR or AW: (accepted, first cycle of an offer)."""
        axi = self.axi
        valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
        address, beats = getattr(axi, f"{channel}addr"), getattr(axi, f"{channel}len")
        size, burst = getattr(axi, f"{channel}size"), getattr(axi, f"{channel}burst")
        with m.If(valid):
            m.d.comb += [
                self.manager(in_4_kib(address, beats, self.port_bytes)),
                self.manager((size == axi_size(self.port_bytes)) & (burst == 1)),
            ]
        return valid & ready, valid & ~self.offers[channel].waits

    def _due(self, m: Module, due: Signal, asked: Value, answers: Value, ends: Value) -> None:
        """Answers only to what was asked in an earlier cycle."""
        m.d.comb += self.subordinate(~answers | (due != 0))
        m.d.sync += due.eq(due + asked - (answers & ends))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        for channel, rules in self.offers.items():
            m.submodules[f"{channel}_rules"] = rules
        taken, _ = self._address(m, "ar")
        answers = axi.rvalid & (axi.rid == self.followed)
        asked = taken & (axi.arid == self.followed)
        self._due(m, self.reads_due, asked, answers, axi.rready & axi.rlast)
        if not self.writes:
            return m

        taken, offered = self._address(m, "aw")
        answers = axi.bvalid & (axi.bid == self.followed)
        asked = taken & (axi.awid == self.followed)
        self._due(m, self.writes_due, asked, answers, axi.bready)

        # beats
        sends, ends = Signal(), Signal()
        m.d.comb += [
            sends.eq(axi.wvalid & axi.wready),
            ends.eq(sends & axi.wlast),
            self.manager(~axi.wvalid | offered | (self.open_bursts != 0)),
        ]
        m.d.sync += self.open_bursts.eq(self.open_bursts + offered - ends)

        # one burst that the prover chooses
        begins = Signal()
        ahead, left = Signal.like(self.ahead), Signal.like(self.left)
        m.d.comb += [
            begins.eq(offered & ~self.watched & self.pick),
            ahead.eq(Mux(begins, self.open_bursts, self.ahead)),
            left.eq(Mux(begins, axi.awlen, self.left)),
            self.beat_id.eq(Mux(begins, axi.awid, self.kept_id)),
            self.beat_next.eq((begins | self.watched) & (ahead == 0) & axi.wvalid),
        ]
        m.d.sync += [self.ahead.eq(ahead - (ends & (ahead != 0))), self.left.eq(left)]
        with m.If(begins):
            m.d.sync += [self.watched.eq(1), self.kept_id.eq(axi.awid)]
        with m.If(self.beat_next):
            m.d.comb += self.manager(axi.wlast == (left == 0))
            with m.If(sends):
                m.d.sync += [self.left.eq(left - 1), self.watched.eq(left != 0)]
        return m
