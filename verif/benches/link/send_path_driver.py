"""Sources, framing and the other side around a send path, and what must come out of it."""

from collections import deque
from collections.abc import Iterator

from cocotb.triggers import RisingEdge

from rtl.contract.link import DEDICATED_FLITS, FLIT_PAYLOAD_BYTES, UNIT_FLITS_MAX, PacketOpcode
from rtl.link.beat import beat_layout, packet_layout
from rtl.link.framing.send_path import CREDIT_BITS
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stall import styled
from verif.agents.stream import StreamSink, StreamSource
from verif.benches.link.packets import OPCODES, beats_of
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet, beats_needed, flits_of, header_of, unpack

__all__ = ["COVER", "SendBench"]

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
        self.beat, self.packet = opened(beat_layout(self.link)), opened(packet_layout(self.link))
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
            begun = self.part or self.dut.o__valid.value == 1 or self.dut.spend.value == 1
            assert self.dut.busy.value == 1 or not begun, "idle in the middle of a flit"
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
                self.admitted(self.packet(int(self.dut.packet__payload.value)), room)

    def admitted(self, beat, room: int) -> None:
        """A packet's first beat enters only where there is room."""
        opcode = int(beat.data) & 0xF
        if beat.first and opcode in [int(o) for o in OPCODES] and beat.class_ < self.link.classes and not self.bad:
            queue = 2 * int(beat.class_) + (opcode in (PacketOpcode.READ_RESPONSE, PacketOpcode.ERROR_RESPONSE))
            assert room >> queue & 1, f"a packet entered queue {queue}, which had no room"

    def take(self, word: int) -> None:
        """A beat of a flit."""
        beat = self.beat(word)
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
        await self.cycles(3)
        assert self.dut.busy.value == 0, "busy although all flits are out"
