"""Units through a whole switch with a partner at every port: what was sent, what came, what is told."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from rtl.contract.link import FLIT_HEADER, FLIT_HEADER_BYTES, NO_PROGRESS_FLITS, LinkCause, PacketOpcode
from rtl.contract.link import PACKET_HEADER as HEADER
from rtl.contract.switch_registers import SwitchCause, SwitchRegister, port_address
from verif.agents.bench import Bench
from verif.agents.switch_ports import SwitchPorts
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet, Units, flits_of, grouped, header_of, unpack

__all__ = ["FLITS", "Traffic", "bare", "begin", "unit"]

FLITS = ["1 flit", "2 flits", "3 flits", "4 flits"]
_QUIET_FLITS = NO_PROGRESS_FLITS + 100
"""Flit times without a unit after which none will come: a link trains anew sooner."""


def unit(
    rng: Any, source: int, to: int, number: int, *, classes: int, opcode: int | None = None, short: bool = False
) -> list[bytes]:
    """Flits of a unit with one or more packets; `opcode`: of its first one; `short`: one flit."""
    class_ = int(rng.integers(classes))
    response = opcode is None and rng.random() < 0.25
    first = PacketOpcode.READ_RESPONSE if response else PacketOpcode.WRITE if opcode is None else opcode
    packets = []
    for k in range(1 if short else int(rng.integers(1, 4))):
        code = first if k == 0 or response else PacketOpcode.WRITE
        length = (int(rng.choice([8, 40, 200] if short else [8, 40, 200, 250, 400, 500]))) if k == 0 else 200
        head = HEADER.pack(opcode=int(code), length_bytes=length, tag=number % 1024, source=source, address=number)
        carries = code != PacketOpcode.READ
        data = head.to_bytes(16, "little") + (rng.bytes(length) if carries else b"")
        packets.append(Packet(class_, to, data))
    return flits_of(grouped(packets)[0])


def bare(flit: bytes) -> bytes:
    """A flit without what changes on a hop."""
    header = FLIT_HEADER.unpack(int.from_bytes(flit[:FLIT_HEADER_BYTES], "little"))
    header["dedicated"] = header["vc"] = 0
    return FLIT_HEADER.pack(header).to_bytes(FLIT_HEADER_BYTES, "little") + flit[FLIT_HEADER_BYTES:]


Key = tuple[int, int, int]  # source, class * 2 + kind, destination


class Traffic:
    """What was sent and what came, as units, by (source, queue, destination); `arrived`, `heard`: units, flits
    that came out, by port."""

    def __init__(self, bench: Bench, ports: SwitchPorts, cover: Coverage):
        self.bench = bench
        self.cover = cover
        self.ports = ports
        count = ports.cfg.ports
        self.sent: dict[Key, list[list[bytes]]] = defaultdict(list)
        self.got: dict[Key, list[list[bytes]]] = defaultdict(list)
        self.units = [Units() for _ in range(count)]
        self.number = 0
        self.arrived = [0] * count
        self.heard = [0] * count

    def send(
        self, source: int, to: int, *, opcode: int | None = None, at: int | None = None, short: bool = False
    ) -> list[bytes]:
        """A unit from port `source` to endpoint `to`, which is expected to come out there. Returns its flits."""
        ports, rng = self.ports, self.bench.rng
        self.number += 1
        flits = unit(rng, source, to, self.number, classes=ports.cfg.link.classes, opcode=opcode, short=short)
        for flit in flits:
            ports.partners[source].send(flit)
        header = header_of(flits[0])
        self.cover.hit(FLITS[len(flits) - 1])
        self.cover.when(source == to, "to itself")
        self.cover.when(bool(header["kind"]), "response")
        if at is None:
            self.sent[source, 2 * header["class_"] + header["kind"], to].append([bare(f) for f in flits])
        return flits

    def collect(self) -> None:
        """What the partners have received since."""
        for p, partner in enumerate(self.ports.partners):
            self.heard[p] += len(partner.received)
            for flit in partner.received:
                done = self.units[p].arrive(flit)
                if not done:
                    continue
                packets, bad = unpack(done)
                assert not bad, f"port {p}: a unit that cannot be read"
                if not packets:
                    continue  # the rest of one that was dropped
                header = header_of(done[0])
                source = packets[0].header["source"]
                self.got[source, 2 * header["class_"] + header["kind"], p].append([bare(f) for f in done])
                self.arrived[p] += 1
            partner.received.clear()

    async def drain(self, flit_times: int = 4000) -> None:
        """Until everything sent has come; AssertionError if it does not."""
        came = quiet = 0
        for _ in range(flit_times // 20):
            await self.ports.run(20 * self.ports.cfg.slot_cycles)
            self.collect()
            if {k: v for k, v in self.got.items() if v} == {k: v for k, v in self.sent.items() if v}:
                return
            quiet = quiet + 20 if came == sum(self.arrived) else 0
            came = sum(self.arrived)
            if quiet >= _QUIET_FLITS:
                break
        for key in self.sent.keys() | self.got.keys():
            source, queue, to = key
            mine, theirs = self.sent[key], self.got[key]
            assert mine == theirs, f"{source} to {to}, queue {queue}: {len(mine)} units sent, {len(theirs)} came"

    def need(self, units: int, ports: Iterable[int] | None = None) -> None:
        """So many units have come out of every port, or of these ones; begins to count anew."""
        few = {p: n for p, n in enumerate(self.arrived) if n < units and (ports is None or p in ports)}
        assert not few, f"units that came out, by port: {few}, fewer than {units}"
        self.arrived = [0] * len(self.arrived)

    async def told(self, cause: SwitchCause | LinkCause) -> list[int]:
        """What the ports of the switch have counted."""
        base = SwitchRegister.CAUSE if isinstance(cause, SwitchCause) else SwitchRegister.LINK_CAUSE
        return [await self.ports.read(port_address(p, base) + 8 * cause) for p in range(self.ports.cfg.ports)]


async def begin(dut: Any, cover: Coverage, damage: float = 0.0, turned: int = 0) -> tuple[Bench, SwitchPorts, Traffic]:
    """A switch with all its links up, each in the first session of both ends."""
    bench = Bench(dut)
    ports = SwitchPorts(bench, dut, bench.cfg, turned=turned)
    await bench.start()
    await ports.up()
    for p, partner in enumerate(ports.partners):
        sessions = partner.own.sessions.session << 16 | ports.session_init + 257 * p + 1 & 0xFFFF
        told = await ports.read(port_address(p, SwitchRegister.SESSION))
        assert told == sessions, f"port {p} tells sessions {told:08x}, not {sessions:08x}"
    ports.damage = damage
    return bench, ports, Traffic(bench, ports, cover)
