"""Flits good and bad for the receive path, and what must come out; what its bench drives."""

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.link import FLIT_BYTES, FLIT_HEADER, FLIT_HEADER_BYTES, UNIT_FLITS_MAX, PacketOpcode
from verif.agents.bench import Bench
from verif.agents.stall import styled
from verif.agents.stream import StreamSink
from verif.benches.link.packets import OPCODES, Assembler, random_packet
from verif.checks.coverage import Coverage
from verif.golden.framing import FLIT_WORDS, Packet, Units, flits_of, grouped, header_of, unpack

__all__ = ["COVER", "ReceiveBench", "PACKET_CHANGES", "UNIT_CHANGES"]


PACKET_CHANGES = {  # what is done to the first packet of a unit, or to a header of its flits
    "unknown opcode": lambda f, r: _poke(f, 0, (f[0][4] & 0xF0) | int(r.integers(7, 15))),
    "unknown flag": lambda f, r: _poke(f, 0, f[0][4] | 0x20 << int(r.integers(3))),
    "length above 512": lambda f, r: _poke(f, 1, 0xFF, 0x03),
    "length beyond the unit": lambda f, r: _poke(f, 1, 0, 2),
    "the other kind": lambda f, r: _poke(f, 0, (f[0][4] & 0xF0) | (0 if header_of(f[0])["kind"] else 5)),
    "zeros": lambda f, r: [f[0][:4] + bytes(len(f[0]) - 4), *f[1:]],
    "offset wrong": lambda f, r: _header(f, r, offset=int(r.integers(1, 64))),
}
UNIT_CHANGES = {  # what is done to the flits of a unit
    "no head": lambda f, r: f[1:] if len(f) > 1 else _header(f, r, 0, head=0),
    "no tail": lambda f, r: f[:-1] if len(f) > 1 else _header(f, r, 0, tail=0),
    "a flit is missing": lambda f, r: [f[0], *f[2:]] if len(f) > 2 else f,
    "head in the middle": lambda f, r: _header(f, r, -1, head=1) if len(f) > 1 else f,
    "tail in the middle": lambda f, r: _header(f, r, 0, tail=1) if len(f) > 1 else f,
    "5 flits and more": lambda f, r: _long(f, int(r.integers(1, 8))),
    "4 flits, no tail": lambda f, r: _long(f, 0)[:UNIT_FLITS_MAX],
    "two endpoints": lambda f, r: _header(f, r, -1, endpoint=0xABC),
}

COVER = Coverage(
    "port.receive_path",
    [
        *(o.name for o in OPCODES),
        *PACKET_CHANGES,
        *UNIT_CHANGES,
        "units interleave",
        "both outputs in a cycle",
        "clear drops",
        "clear keeps",
        "overrun",
        "dedicated",
        "shared",
        "a packet header over two flits",
        "the packet before a wrong offset goes out",
    ],
)


def _poke(flits: list[bytes], at: int, *values: int) -> list[bytes]:
    """Bytes of the first packet's header replaced, from `at` on."""
    first = bytearray(flits[0])
    first[FLIT_HEADER_BYTES + at : FLIT_HEADER_BYTES + at + len(values)] = bytes(values)
    return [bytes(first), *flits[1:]]


def _header(flits: list[bytes], rng: np.random.Generator, number: int | None = None, **fields: int) -> list[bytes]:
    """Fields of one flit's header replaced; of any flit if no number is given."""
    number = int(rng.integers(len(flits))) if number is None else number % len(flits)
    flit = flits[number]
    header = FLIT_HEADER.pack(header_of(flit) | fields).to_bytes(FLIT_HEADER_BYTES, "little")
    return [header + flit[FLIT_HEADER_BYTES:] if n == number else f for n, f in enumerate(flits)]


def _long(flits: list[bytes], more: int) -> list[bytes]:
    """The first flit and many that are neither head nor tail, then a tail."""
    rng = np.random.default_rng(0)
    middle = _header(flits[:1], rng, 0, head=0, tail=0)
    return [
        *_header(flits[:1], rng, 0, tail=0),
        *middle * (UNIT_FLITS_MAX - 1 + more),
        *_header(middle, rng, 0, tail=1),
    ]


class ReceiveBench(Bench):
    """Flits -> unit -> a sink for each kind; the golden model says what of them are packets."""

    def __init__(self, dut, spacing: str = "never", sinks: str = "never"):
        super().__init__(dut)
        link = self.cfg
        self.spacing: Iterator[bool] = styled(spacing, self.rng)
        self.units = Units()
        self.expected: list[deque[Packet]] = [deque() for _ in range(link.queues)]
        self.bad_packets = 0  # that should be counted
        self.bad = [0, 0, 0]  # counted: units, packets of each kind
        self.overruns = 0
        self.held = np.zeros(link.accounts, dtype=int)  # flits in the pool, by account
        self.sizes = np.array([UNIT_FLITS_MAX] * link.queues + [link.shared_flits] * 2)
        self.flits: deque[bytes] = deque()
        self.obeys = True  # sends a flit only if its account has room
        self.sinks = []
        self.got = 0
        self.last_packet = 0
        for name in ("request", "response"):
            assembler = Assembler(self.cfg)
            sink = StreamSink(self, name, styled(sinks, self.rng))
            sink.on_taken = self.taker(assembler)
            self.sinks.append(sink)
        dut.valid.value = 0
        dut.clear.value = 0
        self.cycle = 0

    def taker(self, assembler: Assembler) -> Callable[[int], None]:
        """Checks the packets of one output."""

        def take(word: int) -> None:
            assembler.beat(word)
            while assembler.packets:
                packet = assembler.packets.pop()
                queue = self.expected[packet.queue]
                assert queue, f"a packet came out of queue {packet.queue}, where none was expected: {packet}"
                expected = queue.popleft()
                assert packet == expected, f"queue {packet.queue}: {packet} came, {expected} was next"
                self.got += 1
                self.last_packet = self.cycle

        return take

    def send(self, flits: list[bytes]) -> None:
        """Queue flits."""
        self.flits.extend(flits)

    def arrived(self, flit: bytes) -> None:
        """Tell the golden model."""
        unit = self.units.arrive(flit)
        if unit:
            packets, bad = unpack(unit)
            self.bad_packets += bad
            for packet in packets:
                self.expected[packet.queue].append(packet)
                COVER.hit(PacketOpcode(packet.header["opcode"]).name)
            offsets = [header_of(f)["offset"] for f in unit]
            COVER.when(any(54 < o < FLIT_WORDS for o in offsets), "a packet header over two flits")
            COVER.when(bad and packets, "the packet before a wrong offset goes out")

    def account(self, flit: bytes) -> int:
        """The account that a flit names."""
        header = header_of(flit)
        queue = 2 * header["class_"] + header["kind"]
        return queue if header["dedicated"] else self.cfg.queues + header["kind"]

    async def drive(self) -> None:
        """Send flits, a beat a cycle or slower; watch the strobes."""
        link = self.cfg
        edge = RisingEdge(self.clk)
        size = link.beat_bytes
        parts: deque[tuple[int, bytes]] = deque()
        while True:
            if not parts and self.flits:
                flit = self.flits[0]
                account = self.account(flit)
                if not self.obeys or self.held[account] < self.sizes[account]:
                    self.flits.popleft()
                    self.held[account] += 1
                    COVER.hit("dedicated" if account < link.queues else "shared")
                    padded = flit.ljust(FLIT_BYTES, b"\xa5")  # DLP and codes of a real flit stand there
                    for n in range(link.beats):
                        flags = int(n == 0) | int(n == link.beats - 1) << 1
                        parts.append((int.from_bytes(padded[n * size : (n + 1) * size], "little") << 2 | flags, flit))
            valid = bool(parts) and not next(self.spacing)
            self.dut.valid.value = int(valid)
            if valid:
                word, flit = parts.popleft()
                self.dut.beat.value = word
                if not parts:
                    self.arrived(flit)
            await edge
            self.cycle += 1
            dut = self.dut
            self.bad[0] += dut.bad_unit.value == 1
            strobes = int(dut.bad_packet.value)
            self.bad[1] += strobes & 1
            self.bad[2] += strobes >> 1
            self.overruns += dut.overrun.value == 1
            COVER.when(dut.request__valid.value == 1 and dut.response__valid.value == 1, "both outputs in a cycle")
            if dut.freed.value == 1:
                account = int(dut.freed_account.value)
                self.held[account] -= 1
                assert self.held[account] >= 0, f"account {account} got a place back that it had not used"

    async def all_out(self) -> None:
        """Wait until everything expected has come, and every place is free again."""
        while self.flits or self.dut.valid.value == 1:
            await RisingEdge(self.clk)
        await self.cycles(8)
        while any(self.expected):
            await RisingEdge(self.clk)
        await self.cycles(40)
        open_flits = sum(len(u) for u in self.units._open.values())
        assert self.held.sum() == open_flits, f"{self.held.sum()} flits are held, {open_flits} of open units"
        assert self.bad[0] == self.units.bad, f"{self.bad[0]} bad units were counted, {self.units.bad} came"
        found = self.bad[1] + self.bad[2]
        assert found == self.bad_packets, f"{found} bad packets were counted, {self.bad_packets} came"

    def dedicated(self, packets: list[Packet]) -> list[int]:
        """The pool that each flit of a unit names, at random."""
        return self.rng.integers(0, 2, len(flits_of(packets))).tolist()

    def some_units(self, count: int, classes: int) -> list[list[bytes]]:
        """Units of random packets."""
        units = []
        for _ in range(count):
            first = random_packet(self.rng, classes)
            packets = [first]
            for _ in range(int(self.rng.integers(6))):
                more = random_packet(self.rng, classes, kind=first.kind)
                packets.append(Packet(first.class_, first.endpoint, more.data))
            unit = grouped(packets)[0]
            units.append(flits_of(unit, self.dedicated(unit)))
        return units
