"""ReceivePath: packets of golden flits come out as they were; what is malformed is counted and harms nothing else."""

from collections import deque
from collections.abc import Callable, Iterator

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.link import FLIT_BYTES, FLIT_HEADER, FLIT_HEADER_BYTES, NO_HEADER, UNIT_FLITS_MAX, PacketOpcode
from verif.agents.bench import Bench
from verif.agents.stall import styled
from verif.agents.stream import StreamSink
from verif.benches.port.packets import OPCODES, Assembler, make_packet, random_packet
from verif.checks.coverage import Coverage
from verif.golden.framing import FLIT_WORDS, Packet, Units, flits_of, grouped, header_of, unpack

_PACKET = {  # what is done to the first packet of a unit, or to a header of its flits
    "unknown opcode": lambda f, r: _poke(f, 0, (f[0][4] & 0xF0) | int(r.integers(7, 15))),
    "unknown flag": lambda f, r: _poke(f, 0, f[0][4] | 0x20 << int(r.integers(3))),
    "length above 512": lambda f, r: _poke(f, 1, 0xFF, 0x03),
    "length beyond the unit": lambda f, r: _poke(f, 1, 0, 2),
    "the other kind": lambda f, r: _poke(f, 0, (f[0][4] & 0xF0) | (0 if header_of(f[0])["kind"] else 5)),
    "zeros": lambda f, r: [f[0][:4] + bytes(len(f[0]) - 4), *f[1:]],
    "offset wrong": lambda f, r: _header(f, r, offset=int(r.integers(1, 64))),
}
_UNIT = {  # what is done to the flits of a unit
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
        *_PACKET,
        *_UNIT,
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


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(
    (
        ("spacing", "sinks"),
        [("never", "never"), ("rarely", "half"), ("half", "mostly"), ("never", "bursty"), ("bursty", "never")],
    )
)
async def packets_as_they_were(dut, spacing: str, sinks: str) -> None:
    bench = ReceiveBench(dut, spacing, sinks)
    await bench.start()
    cocotb.start_soon(bench.drive())
    for unit in bench.some_units(80, bench.cfg.classes):
        bench.send(unit)
    await bench.all_out()
    assert bench.bad == [0, 0, 0], "sound units were counted as bad"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def every_length(dut) -> None:
    """Payloads of 0 to 512 bytes, with a signal and without, several in a unit."""
    bench = ReceiveBench(dut)
    await bench.start()
    cocotb.start_soon(bench.drive())
    rng = bench.rng
    for opcode in (PacketOpcode.WRITE, PacketOpcode.READ_RESPONSE):
        packets = [make_packet(rng, opcode, n, signal, 1) for n in rng.permutation(513) for signal in (False, True)]
        for unit in grouped(packets):
            bench.send(flits_of(unit, bench.dedicated(unit)))
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
async def units_of_queues_interleave(dut) -> None:
    """Units of different queues flit by flit among each other."""
    bench = ReceiveBench(dut, "rarely", "rarely")
    await bench.start()
    cocotb.start_soon(bench.drive())
    for _ in range(30):
        queues: dict[int, deque[bytes]] = {}
        for unit in bench.some_units(4, bench.cfg.classes):
            header = header_of(unit[0])
            queues.setdefault(2 * header["class_"] + header["kind"], deque()).extend(unit)
        while queues:
            queue = int(bench.rng.choice(list(queues)))
            bench.send([queues[queue].popleft()])
            if not queues[queue]:
                del queues[queue]
        COVER.hit("units interleave")
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize((("spacing", "sinks"), [("never", "never"), ("rarely", "half")]))
async def malformed(dut, spacing: str, sinks: str) -> None:
    """Each kind of malformed unit between sound ones of the same queue."""
    bench = ReceiveBench(dut, spacing, sinks)
    await bench.start()
    cocotb.start_soon(bench.drive())
    for _ in range(6):
        for name, change in (_PACKET | _UNIT).items():
            sound, victim, after = bench.some_units(3, 1)
            if name == "length beyond the unit":
                # an opcode that carries a payload, in a unit of one flit
                victim = flits_of([make_packet(bench.rng, PacketOpcode.WRITE, int(bench.rng.integers(200)))])
            bench.send([*sound, *change(victim, bench.rng), *after])
            COVER.hit(name)
            if bench.rng.integers(3) == 0:
                for unit in bench.some_units(2, bench.cfg.classes):
                    bench.send(unit)
    await bench.all_out()
    assert bench.bad_packets >= 18 and bench.units.bad >= 18, "hardly anything was malformed"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def random_bits(dut) -> None:
    """Flits with random headers and contents: all that can be said is what the golden model says."""
    bench = ReceiveBench(dut, "never", "rarely")
    await bench.start()
    cocotb.start_soon(bench.drive())
    rng = bench.rng
    for _ in range(400):
        fields = {
            "endpoint": int(rng.integers(2)),
            "class_": int(rng.integers(bench.cfg.classes)),
            "kind": int(rng.integers(2)),
            "dedicated": int(rng.integers(2)),
            "head": int(rng.integers(3) < 2),
            "tail": int(rng.integers(2)),
            "offset": int(rng.choice([0, 0, 0, NO_HEADER, rng.integers(64)])),
        }
        body = bytearray(rng.bytes(4 * FLIT_WORDS))
        if rng.integers(2):
            packet = random_packet(rng, 1, kind=fields["kind"]).data[: len(body)]
            body[: len(packet)] = packet
        bench.send([FLIT_HEADER.pack(fields).to_bytes(FLIT_HEADER_BYTES, "little") + bytes(body)])
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
async def clear_drops_what_is_open(dut) -> None:
    """A new session: complete units are delivered, the others freed, at any time."""
    bench = ReceiveBench(dut, "never", "half")
    await bench.start()
    cocotb.start_soon(bench.drive())
    for _ in range(25):
        for unit in bench.some_units(int(bench.rng.integers(4)), bench.cfg.classes):
            bench.send(unit)
        for unit in bench.some_units(2, bench.cfg.classes):
            bench.send(unit[: int(bench.rng.integers(len(unit) + 1))])
        while bench.flits:
            await RisingEdge(bench.clk)
        await bench.cycles(int(bench.rng.integers(6, 10)))
        COVER.when(bench.units._open, "clear drops")
        COVER.when(any(bench.expected), "clear keeps")
        dut.clear.value = 1
        await bench.cycles(1)
        dut.clear.value = 0
        bench.units.clear()
        await bench.cycles(2 * bench.cfg.queues)
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
async def overrun_loses_only_itself(dut) -> None:
    """More flits than places: each flit too many is told, what was complete comes out, and the pool works on."""
    bench = ReceiveBench(dut)
    await bench.start()
    for sink in bench.sinks:
        sink.stall = iter(lambda: True, False)
    cocotb.start_soon(bench.drive())
    bench.obeys = False
    link = bench.cfg
    flits = [f for n in range(link.pool_flits + 12) for f in flits_of([make_packet(bench.rng, 0, 100, False, 0, n)])]
    bench.send(flits)
    while bench.flits:
        await RisingEdge(bench.clk)
    await bench.cycles(3 * link.beats + 8)
    lost = bench.overruns
    assert 0 < lost <= 12, f"{lost} flits were told lost of {len(flits)} for {link.pool_flits} places"
    assert bench.bad[0] == lost, "a unit that lost its flit was not counted"
    bench.held[link.queues] -= lost
    for _ in range(lost):
        bench.expected[0].pop()
    bench.units.bad = lost
    bench.obeys = True
    for sink in bench.sinks:
        sink.stall = styled("never", bench.rng)
    while bench.held.sum():  # the flood took the places of every account
        await RisingEdge(bench.clk)
    for unit in bench.some_units(20, link.classes):
        bench.send(unit)
    await bench.all_out()
    COVER.hit("overrun")


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(size=[0, 64, 213, 325, 512], packed=[False, True])
async def keeps_up_with_the_line(dut, size: int, packed: bool) -> None:
    """Flits without a pause, units of a packet each or as a sender packs them: the pool must not fill."""
    bench = ReceiveBench(dut)
    await bench.start()
    cocotb.start_soon(bench.drive())
    packets = [make_packet(bench.rng, 0, size, False, 0, 0 if packed else n) for n in range(100)]
    flits = [f for u in grouped(packets, bench.cfg) for f in flits_of(u)]
    await bench.cycles(3)
    begun = bench.cycle
    bench.send(flits)
    while bench.got < len(packets):
        await RisingEdge(bench.clk)
    beats = bench.cfg.beats
    took = bench.last_packet - begun
    least = len(flits) * beats
    assert took <= least + 24, f"{len(flits)} flits took {took} cycles, {least} would do"
    await bench.all_out()


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
