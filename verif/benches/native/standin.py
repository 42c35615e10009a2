"""A top with a core's ports that only exercises AXI: bursts as the host asks, with time stamps.

What tests of the native driver build: it is small, and every cycle of the HBM model can be seen.
"""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.axi import AxiSignature, axi_size
from rtl.base.dispatch import RetireSignature
from rtl.contract.config import Config
from rtl.contract.isa import Queue
from rtl.contract.memmap import CoreId

__all__ = ["GO", "REGISTERS", "STRIDE", "StandIn", "VIOLATIONS"]

GO = 0x1000
"""Writing starts all ports; bit 8 of the value raises `fault`, bit 9 keeps `done` low for ever."""

STRIDE = 0x100
"""Registers of port i are at i * STRIDE."""

REGISTERS = {
    "read_address": 0x00,
    "read_bursts": 0x08,
    "read_beats": 0x10,
    "write_address": 0x18,
    "write_bursts": 0x20,
    "write_beats": 0x28,
    "strobe": 0x30,
    "violation": 0x38,
    "urgent": 0x40,  # of every so many read bursts the last one has the highest AxQOS, and an id of its own; 0: none
    "urgent_writes": 0x48,  # all writes have it
    # read only
    "first_ar": 0x80,
    "first_r": 0x88,
    "last_r": 0x90,
    "first_aw": 0x98,
    "last_w": 0xA0,
    "first_b": 0xA8,
    "last_b": 0xB0,
    "hash": 0xB8,
    "responses": 0xC0,
    "urgent_r": 0xC8,  # cycles from AR to first R of urgent bursts, the most
}

_URGENT_ID = 40

VIOLATIONS = {"none": 0, "wlast": 1, "size": 2}


class _Clock(wiring.Component):
    """Cycles since reset, in a module of its own: a scope for tests of waves."""

    now: Out(64)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.now.eq(self.now + 1)
        return m


class StandIn(wiring.Component):
    """Reads bursts into a hash, h' = 5 h + lowest 64 bits; writes bursts of (beat number + lane)."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "axi": Out(AxiSignature(cfg.hbm.port_bytes)).array(cfg.hbm.ports),
                "host_valid": In(1),
                "host_write": In(1),
                "host_address": In(16),
                "host_wdata": In(64),
                "host_rdata": Out(64),
                "core_id": In(CoreId.BITS),
                "done": Out(1),
                "fault": Out(1),
                "retire": Out(RetireSignature()).array(len(Queue)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.clock = clock = _Clock()
        now = clock.now
        running = Signal()
        hangs = Signal()
        with m.If(self.host_valid & self.host_write & (self.host_address == GO)):
            m.d.sync += running.eq(1)
            m.d.sync += self.fault.eq(self.host_wdata[8])
            m.d.sync += hangs.eq(self.host_wdata[9])
        readback = Signal(64)
        m.d.sync += self.host_rdata.eq(readback)
        finished = Const(1)
        for i in range(self.cfg.hbm.ports):
            finished = finished & self._port(m, i, now, running, readback)
        m.d.comb += self.done.eq(running & finished & ~hangs & ~self.fault)
        first = self.retire[0]
        was = Signal()
        m.d.sync += was.eq(running)
        m.d.comb += first.valid.eq(running & ~was)
        m.d.comb += first.sequence.eq(7)
        m.d.comb += first.cause.eq(Mux(self.fault, 3, 0))
        return m

    def _port(self, m: Module, i: int, now: Signal, running: Signal, readback: Signal):
        axi = self.axi[i]
        width = self.cfg.hbm.port_bytes
        regs = {name: Signal(64, name=f"{name}{i}") for name in REGISTERS}
        asked = Signal(16, name=f"asked{i}")
        m.d.sync += asked.eq(self.host_address)
        for name, at in REGISTERS.items():
            here = i * STRIDE + at
            if at < 0x80:
                with m.If(self.host_valid & self.host_write & (self.host_address == here)):
                    m.d.sync += regs[name].eq(self.host_wdata)
            with m.If(asked == here):
                m.d.comb += readback.eq(regs[name])

        def stamp(name: str, when, *, once: bool) -> None:
            with m.If(when & ((regs[name] == 0) if once else Const(1))):
                m.d.sync += regs[name].eq(now)

        def addresses(valid, ready, address, length, size, burst, prefix: str) -> Signal:
            issued = Signal(32, name=f"{prefix}_issued{i}")
            m.d.comb += [
                valid.eq(running & (issued < regs[f"{prefix}_bursts"])),
                address.eq(regs[f"{prefix}_address"] + issued * regs[f"{prefix}_beats"][:9] * width),
                length.eq(regs[f"{prefix}_beats"] - 1),
                size.eq(axi_size(width) - (regs["violation"] == VIOLATIONS["size"])),
                burst.eq(1),
            ]
            with m.If(valid & ready):
                m.d.sync += issued.eq(issued + 1)
            return issued

        addresses(axi.arvalid, axi.arready, axi.araddr, axi.arlen, axi.arsize, axi.arburst, "read")
        stamp("first_ar", axi.arvalid & axi.arready, once=True)
        read = Signal(32, name=f"read{i}")
        place = Signal(8, name=f"place{i}")  # of the burst that is asked for, among those that have an urgent one
        urgent = Signal(name=f"urgent{i}")
        asked, opens = Signal(64, name=f"asked_at{i}"), Signal(init=1, name=f"opens{i}")
        m.d.comb += [
            urgent.eq((regs["urgent"] != 0) & (place == regs["urgent"][:8] - 1)),
            axi.arid.eq(Mux(urgent, _URGENT_ID, 5 + i)),
            axi.arqos.eq(Mux(urgent, 15, 0)),
            axi.awqos.eq(Mux(regs["urgent_writes"] != 0, 15, 0)),
            axi.rready.eq(1),
        ]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += place.eq(Mux(urgent | (regs["urgent"] == 0), 0, place + 1))
            with m.If(urgent):
                m.d.sync += asked.eq(now)
        with m.If(axi.rvalid & (axi.rid == _URGENT_ID)):
            m.d.sync += opens.eq(axi.rlast)
            with m.If(opens & (now - asked > regs["urgent_r"])):
                m.d.sync += regs["urgent_r"].eq(now - asked)
        with m.If(axi.rvalid):
            m.d.sync += regs["hash"].eq(regs["hash"] * 5 + axi.rdata[:64])
            m.d.sync += regs["responses"][:2].eq(regs["responses"][:2] | axi.rresp)
            with m.If(axi.rlast):
                m.d.sync += read.eq(read + 1)
            with m.If((axi.rid != 5 + i) & ((axi.rid != _URGENT_ID) | (regs["urgent"] == 0))):
                m.d.sync += regs["responses"][8].eq(1)
        stamp("first_r", axi.rvalid, once=True)
        stamp("last_r", axi.rvalid, once=False)

        addresses(axi.awvalid, axi.awready, axi.awaddr, axi.awlen, axi.awsize, axi.awburst, "write")
        stamp("first_aw", axi.awvalid & axi.awready, once=True)
        beat = Signal(32, name=f"beat{i}")
        in_burst = Signal(9, name=f"in_burst{i}")
        sent = Signal(32, name=f"sent{i}")
        last = in_burst == regs["write_beats"][:9] - 1
        m.d.comb += [
            axi.awid.eq(9 + i),
            axi.wvalid.eq(running & (sent < regs["write_bursts"])),
            axi.wlast.eq(last ^ (regs["violation"] == VIOLATIONS["wlast"])),
            axi.wstrb.eq(regs["strobe"].replicate(2)),
            axi.bready.eq(1),
        ]
        for lane in range(width // 8):
            m.d.comb += axi.wdata[64 * lane : 64 * lane + 64].eq(beat + lane)
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [beat.eq(beat + 1), in_burst.eq(Mux(last, 0, in_burst + 1)), sent.eq(sent + last)]
        stamp("last_w", axi.wvalid & axi.wready, once=False)
        answered = Signal(32, name=f"answered{i}")
        with m.If(axi.bvalid):
            m.d.sync += answered.eq(answered + 1)
            m.d.sync += regs["responses"][2:4].eq(regs["responses"][2:4] | axi.bresp)
            with m.If(axi.bid != 9 + i):
                m.d.sync += regs["responses"][9].eq(1)
        stamp("first_b", axi.bvalid, once=True)
        stamp("last_b", axi.bvalid, once=False)
        return (read == regs["read_bursts"]) & (answered == regs["write_bursts"])
