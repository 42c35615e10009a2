"""SendPath: every flit is the golden one, whatever comes, whoever holds back."""

from collections import deque
from collections.abc import Iterator

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import DEDICATED_FLITS, FLIT_PAYLOAD_BYTES, UNIT_FLITS_MAX, PacketOpcode
from rtl.port.beat import beat_layout, packet_layout
from rtl.port.send_path import CREDIT_BITS
from verif.agents.bench import Bench, manifest
from verif.agents.stall import styled
from verif.agents.stream import StreamSink, StreamSource
from verif.benches.port.packets import OPCODES, beats_of, make_packet, random_packet
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet, beats_needed, flits_of, grouped, header_of, unpack

COVER = Coverage(
    "port.send_path",
    [
        *(o.name for o in OPCODES),
        *(f"unit of {n} flits" for n in range(1, UNIT_FLITS_MAX + 1)),
        "several packets in a unit",
        "a flit without a packet header",
        "a unit full to the last word",
        "no room for END",
        "a queue without room",
        "no credits",
        "dedicated after shared",
        "signal",
        "bad packet",
        "given up in the middle",
        "a packet header over two flits",
    ],
)


class SendBench(Bench):
    """Source -> unit -> sink; credits come back at random; units are unpacked and packed again by the golden model."""

    def __init__(self, dut, source: str = "never", sink: str = "never", credits: str = "never"):
        super().__init__(dut)
        self.link = self.cfg
        self.beat = beat_layout(self.link)
        self.source = StreamSource(self, "packet", styled(source, self.rng))
        self.sink = StreamSink(self, "o", styled(sink, self.rng))
        self.sink.on_taken = self.take
        self.returns: Iterator[bool] = styled(credits, self.rng)
        self.waiting: list[deque[Packet]] = [deque() for _ in range(self.link.queues)]
        self.spent: deque[int] = deque()
        self.owed: list[int] = []  # accounts of flits whose credits have not come back
        self.free = [DEDICATED_FLITS] * self.link.queues + [self.link.shared_flits] * 2
        self.part = b""
        self.unit: list[bytes] = []
        self.units: list[list[bytes]] = []
        self.flits = 0
        self.bad = 0
        self.cut = 0
        self.cycle = 0
        self.times: list[int] = []  # cycle of each flit's last beat
        self.packets = 0
        dut.pause.value = 0
        dut.clear.value = 0
        self.give()

    def give(self) -> None:
        """Show the credits to the unit."""
        self.dut.free.value = sum(f << (CREDIT_BITS * n) for n, f in enumerate(self.free))

    def send(self, packets: list[Packet]) -> None:
        """Queue packets, and expect them."""
        for packet in packets:
            self.waiting[packet.queue].append(packet)
            self.source.send(beats_of(packet, self.link, self.rng))
            COVER.hit(PacketOpcode(packet.header["opcode"]).name)
            COVER.when(packet.header["flags"], "signal")

    async def watch(self) -> None:
        """Credits, room, strobes."""
        edge = RisingEdge(self.clk)
        while True:
            await edge
            self.cycle += 1
            self.bad += self.dut.bad_packet.value == 1
            if self.dut.spend.value == 1:
                account = int(self.dut.account.value)
                self.spent.append(account)
                self.owed.append(account)
                self.free[account] -= 1
                assert self.free[account] >= 0, f"account {account} has no credit for this flit"
                COVER.when(account < self.link.queues, "dedicated after shared")
            elif self.owed and not next(self.returns):
                self.free[self.owed.pop(int(self.rng.integers(len(self.owed))))] += 1
            self.give()
            COVER.when(not any(self.free[q] for q in (self.link.queues, self.link.queues + 1)), "no credits")
            room = int(self.dut.room.value)
            COVER.when(room != (1 << self.link.queues) - 1, "a queue without room")
            if self.dut.packet__valid.value == 1 and self.dut.packet__ready.value == 1:
                self.admitted(packet_layout(self.link).from_bits(int(self.dut.packet__payload.value)), room)

    def admitted(self, beat, room: int) -> None:
        """A packet's first beat enters only where there is room."""
        opcode = int(beat.data) & 0xF
        if beat.first and opcode in [int(o) for o in OPCODES] and beat.class_ < self.link.classes and not self.bad:
            queue = 2 * int(beat.class_) + (opcode in (PacketOpcode.READ_RESPONSE, PacketOpcode.ERROR_RESPONSE))
            assert room >> queue & 1, f"a packet entered queue {queue}, which had no room"

    def take(self, word: int) -> None:
        """A beat of a flit."""
        beat = self.beat.from_bits(word)
        size = self.link.beat_bytes
        assert bool(beat.first) == (not self.part), "first stands at the wrong beat"
        self.part += int(beat.data).to_bytes(size, "little")
        assert bool(beat.last) == (len(self.part) == self.link.beats * size), "last stands at the wrong beat"
        if beat.last:
            self.flit(self.part)
            self.part = b""

    def flit(self, flit: bytes) -> None:
        """A flit; at its unit's end all must equal the golden ones."""
        assert not any(flit[FLIT_PAYLOAD_BYTES:]), "the bytes of DLP and codes are not 0"
        flit = flit[:FLIT_PAYLOAD_BYTES]
        self.flits += 1
        self.times.append(self.cycle)
        header = header_of(flit)
        queue = 2 * header["class_"] + header["kind"]
        account = self.spent.popleft()
        assert account == (queue if header["dedicated"] else self.link.queues + header["kind"]), "the wrong account"
        assert bool(header["head"]) == (not self.unit), "head stands at the wrong flit"
        self.unit.append(flit)
        assert len(self.unit) <= UNIT_FLITS_MAX, "a unit is too long"
        COVER.when(header["offset"] == 63, "a flit without a packet header")
        COVER.when(54 < header["offset"] < 58, "a packet header over two flits")
        if header["tail"]:
            unit, self.unit = self.unit, []
            self.check(queue, unit)

    def check(self, queue: int, unit: list[bytes]) -> None:
        """The packets of a unit are the next of their queue, and the golden model makes the same flits of them."""
        packets, bad = unpack(unit)
        assert not bad, "the golden model finds a bad packet in a unit"
        for packet in packets:
            assert self.waiting[queue], f"a packet left queue {queue}, which is empty"
            expected = self.waiting[queue].popleft()
            assert packet == expected, f"queue {queue}: {packet} left, {expected} was next"
        pace = len(unit) * self.link.flit_cycles
        assert len(packets) == 1 or beats_needed(packets, self.link) <= pace, (
            f"{len(packets)} packets in {len(unit)} flits"
        )
        golden = flits_of(packets, [header_of(f)["dedicated"] for f in unit])
        assert unit == golden, f"queue {queue}: a unit of {len(packets)} packets differs from the golden one"
        self.packets += len(packets)
        self.units.append(unit)
        words = sum(p.words for p in packets)
        COVER.hit(f"unit of {len(unit)} flits")
        COVER.when(len(packets) > 1, "several packets in a unit")
        COVER.when(words == 58 * UNIT_FLITS_MAX, "a unit full to the last word")
        COVER.when(54 < words - 58 * (len(unit) - 1) < 58, "no room for END")

    async def all_out(self) -> None:
        """Wait until everything expected has left."""
        await self.source.drained()
        while any(self.waiting):
            await RisingEdge(self.clk)


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(
    (
        ("source", "sink", "credits"),
        [
            ("never", "never", "never"),
            ("rarely", "half", "mostly"),
            ("half", "bursty", "rarely"),
            ("never", "mostly", "half"),
            ("bursty", "never", "mostly"),
        ],
    )
)
async def any_packets(dut, source: str, sink: str, credits: str) -> None:
    bench = SendBench(dut, source, sink, credits)
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    bench.send([random_packet(rng, bench.link.classes) for _ in range(150)])
    one = int(rng.integers(bench.link.classes))  # then many to one queue, so that units fill
    bench.send([make_packet(rng, 0, int(rng.integers(70)), False, one, 1 + (n > 60)) for n in range(90)])
    bench.send([make_packet(rng, 0, 448, False, one, 1) for _ in range(8)])
    await bench.all_out()
    assert bench.bad == 0, "a good packet was counted as bad"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def every_length(dut) -> None:
    """Payloads of 0 to 512 bytes, with a signal and without."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    for length in range(513):
        for signal in (False, True):
            bench.send([make_packet(bench.rng, OPCODES[length % 4], length, signal, length % bench.link.classes)])
    await bench.all_out()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def packs_as_much_as_fits(dut) -> None:
    """Packets that all wait before the first unit may start make the units of the golden model."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    for sizes in (
        [20, 40, 0, 500, 16, 64, 64],
        [448, 448, 448, 448],
        [448, 448, 448, 444, 1],
        [216] * 7,
        [212, 208, 212, 208, 212, 1],
        [512, 512, 0, 0],
        [8] * 16,
        [64] * 8,
    ):
        dut.pause.value = 1
        bench.units.clear()
        packets = [make_packet(bench.rng, PacketOpcode.WRITE, size, False, 0, 3) for size in sizes]
        bench.send(packets)
        await bench.source.drained()
        await bench.cycles(4)
        dut.pause.value = 0
        await bench.all_out()
        expected = [flits_of(unit) for unit in grouped(packets, bench.link)]
        assert [len(u) for u in bench.units] == [len(u) for u in expected], f"{sizes}: units of other sizes"
        assert bench.units == expected, f"{sizes}: units differ"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def a_source_that_stops_in_a_packet(dut) -> None:
    """The unit to which the packet is appended stays until it is whole, though the line has nothing else."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    for _ in range(10):
        dut.pause.value = 1
        bench.units.clear()
        packets = [make_packet(bench.rng, PacketOpcode.WRITE, size, False, 0, 1) for size in (64, 64, 64, 180)]
        bench.send(packets[:3])
        bench.waiting[0].append(packets[3])
        parts = beats_of(packets[3], bench.link, bench.rng)
        bench.source.send(parts[:1])
        await bench.source.drained()
        dut.pause.value = 0
        await bench.cycles(60)
        assert len(bench.units) == 2, f"{len(bench.units)} units left, two were whole"
        bench.source.send(parts[1:])
        await bench.all_out()
        assert bench.units == [flits_of(unit) for unit in grouped(packets, bench.link)]


@cocotb.test(timeout_time=60, timeout_unit="us")
async def refuses_what_is_no_packet(dut) -> None:
    """A packet that is wrong is counted and leaves no trace; those around it go."""
    bench = SendBench(dut, "rarely")
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    wrong = 0
    for round_ in range(8):
        for fault in ("opcode", "END", "flags", "length", "class", "early", "late", "first"):
            bench.send([random_packet(rng, 2)])
            beats = beats_of(make_packet(rng, 0, int(rng.integers(240, 400)), False, round_ % 2, 1), bench.link)
            at = 17  # of data in a beat
            if fault == "opcode":
                beats[0] |= int(rng.integers(7, 15)) << at
            elif fault == "END":
                beats[0] |= 15 << at
            elif fault == "flags":
                beats[0] |= int(rng.integers(1, 8)) << (at + 5)
            elif fault == "length":
                beats[0] = beats[0] & ~(0x3FF << (at + 8)) | int(rng.integers(513, 1024)) << (at + 8)
            elif fault == "class":
                if bench.link.classes == 8:
                    continue
                beats = [b & ~(7 << 2) | bench.link.classes << 2 for b in beats]
            elif fault == "early":
                beats = beats[:-1]
                beats[-1] |= 2
            elif fault == "late":
                beats = [b & ~2 for b in beats] + [beats[-1]]
            elif fault == "first":
                beats[1] |= 1
            wrong += 1
            bench.source.send(beats)
    bench.send([random_packet(rng, 2) for _ in range(5)])
    await bench.all_out()
    assert bench.bad == wrong, f"{bench.bad} bad packets were counted, {wrong} were sent"
    COVER.hit("bad packet")


@cocotb.test(timeout_time=60, timeout_unit="us")
async def gives_up_a_unit(dut) -> None:
    """A new session in the middle of anything: what was cut is told, and the next unit is right."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    for _ in range(40):
        packets = [make_packet(rng, 0, int(rng.integers(300, 513)), False, 0, n) for n in range(5)]
        bench.send(packets)
        await bench.cycles(int(rng.integers(5, 40)))
        seen = bench.flits
        dut.pause.value = 1
        dut.clear.value = 1
        await bench.cycles(1)
        dut.clear.value = 0
        cut = int(dut.cut.value)
        await bench.cycles(1)  # the sink's last beat has come
        whole = len(flits_of([bench.waiting[0][0]])) if bench.waiting[0] else 0
        if cut:
            # the unit under way: its first flits left, `cut` did not
            left = len(bench.unit)
            assert whole == left + cut, f"{left} flits left, {cut} were cut, the unit has {whole}"
            bench.waiting[0].popleft()
            COVER.hit("given up in the middle")
        else:
            assert not bench.unit, f"a unit is open after {seen} flits and nothing was cut"
        bench.unit.clear()
        bench.part = b""
        bench.spent.clear()
        await bench.cycles(8)
        dut.pause.value = 0
        await bench.all_out()


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(size=[0, 448, 512])
async def a_flit_in_each_flit_time(dut, size: int) -> None:
    """Units of 1, 2 to 4 and 3 flits that wait leave without a pause."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    dut.pause.value = 1
    for n in range(4):
        for class_ in range(min(4, bench.link.classes)):
            bench.send([make_packet(bench.rng, PacketOpcode.WRITE, size, False, class_, n)])
    await bench.source.drained()
    await bench.cycles(4)
    dut.pause.value = 0
    await bench.all_out()
    beats = bench.link.beats
    gaps = [b - a for a, b in zip(bench.times, bench.times[1:])]
    assert set(gaps) == {beats}, f"flits came {sorted(set(gaps))} cycles apart, {beats} is a flit time"


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(size=[8, 64, 200, 325, 448, 512])
async def a_stream_keeps_the_line_busy(dut, size: int) -> None:
    """Packets of one size to one queue, without gaps: packing them costs the line nothing."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    bench.send([make_packet(bench.rng, PacketOpcode.WRITE, size, False, 0, 1) for _ in range(150)])
    await bench.source.drained()
    gaps = [b - a for a, b in zip(bench.times, bench.times[1:])][16:]
    beats = bench.link.beats
    assert set(gaps) == {beats}, f"{size} bytes: flits came {sorted(set(gaps))} cycles apart, {beats} is a flit time"
    await bench.all_out()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def classes_share_the_line(dut) -> None:
    """Two classes that always have units waiting: 10,000 flits in the proportion of the weights, within 2 %."""
    # at x16 packets come as fast as flits could leave: the line is held back, so that they wait
    bench = SendBench(dut, sink="never" if manifest().config.beats == 4 else "half")
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    count = 0
    while len(bench.units) < 10_000:
        room = int(dut.room.value)
        open_to = [c for c in (0, 1) if room >> (2 * c) & 1 and len(bench.waiting[2 * c]) < 8]
        if not bench.source.queue and open_to:
            class_ = min(open_to, key=lambda c: len(bench.waiting[2 * c]))
            bench.send([make_packet(rng, PacketOpcode.WRITE, 0, False, class_, count)])
            count = (count + 1) % 4096  # another endpoint: a unit of its own
        await RisingEdge(bench.clk)
    served = [sum(header_of(u[0])["class_"] == c for u in bench.units) for c in (0, 1)]
    weights = bench.link.weights
    share = served[0] / sum(served) * (weights[0] + weights[1]) / weights[0]
    assert abs(share - 1) <= 0.02, f"flits of the classes: {served}, weights {weights[:2]}"


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
