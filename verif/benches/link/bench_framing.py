"""A sender and a receiver back to back: every packet comes out once, in the order of its queue, at line rate."""

from collections import deque
from collections.abc import Callable

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.link import DEDICATED_FLITS, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.send_path import CREDIT_BITS
from verif.agents.bench import Bench
from verif.agents.stall import styled
from verif.agents.stream import StreamSink, StreamSource
from verif.bench import Run
from verif.benches.link.packets import Assembler, beats_of, make_packet, random_packet
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet

_SMALL = LinkConfig(classes=2, shared_flits=8, weights=(3, 1, 1, 1, 1, 1, 1, 1))
_EIGHT = LinkConfig(shared_flits=32)
_WIDE = LinkConfig(lanes=16, classes=2, shared_flits=8, send_beats=48, weights=(3, 1, 1, 1, 1, 1, 1, 1))

_PLANTED = (
    "the last flit of a unit is no tail",
    "a freed place of the receive pool is not used again",
    "the gap between two flits is a lane too short",
    "a packet joins the unit that the line wants next",
)

RUNS = (
    Run("framing", config=_SMALL, faults=_PLANTED),
    Run("framing", config=_EIGHT, regress=True),
    Run("framing", config=_WIDE, regress=True),
)

COVER = Coverage(
    "port.framing",
    ["requests wait, responses come", "line rate", "all queues", "no credits"],
)


class FramingBench(Bench):
    """Packets in, packets out; credits return when the receiver frees a place."""

    def __init__(self, dut, source: str = "never", hold: str = "never", sinks: tuple[str, str] = ("never", "never")):
        super().__init__(dut)
        self.source = StreamSource(self, "packet", styled(source, self.rng))
        self.hold = styled(hold, self.rng)
        self.free = [DEDICATED_FLITS] * self.cfg.queues + [self.cfg.shared_flits] * 2
        self.waiting: list[deque[Packet]] = [deque() for _ in range(self.cfg.queues)]
        self.got = np.zeros(self.cfg.queues, dtype=int)
        self.sinks = []
        for name, style in zip(("request", "response"), sinks):
            sink = StreamSink(self, name, styled(style, self.rng))
            sink.on_taken = self.taker(Assembler(self.cfg))
            self.sinks.append(sink)
        self.cycle = 0
        self.times: list[int] = []
        for port in (dut.pause, dut.clear, dut.hold):
            port.value = 0
        self.give()

    def give(self) -> None:
        """Show the credits to the sender."""
        self.dut.free.value = sum(f << (CREDIT_BITS * n) for n, f in enumerate(self.free))

    def taker(self, assembler: Assembler) -> Callable[[int], None]:
        """Checks the packets of one output."""

        def take(word: int) -> None:
            assembler.beat(word)
            while assembler.packets:
                packet = assembler.packets.pop()
                queue = self.waiting[packet.queue]
                assert queue, f"a packet came out of queue {packet.queue}, where none was expected: {packet}"
                expected = queue.popleft()
                assert packet == expected, f"queue {packet.queue}: {packet} came, {expected} was next"
                self.got[packet.queue] += 1

        return take

    def send(self, packets: list[Packet]) -> None:
        """Queue packets, and expect them."""
        for packet in packets:
            self.waiting[packet.queue].append(packet)
            self.source.send(beats_of(packet, self.cfg, self.rng))

    async def watch(self) -> None:
        """Credits, flits, strobes that must not be."""
        edge = RisingEdge(self.clk)
        dut = self.dut
        while True:
            await edge
            self.cycle += 1
            if dut.spend.value == 1:
                account = int(dut.account.value)
                self.free[account] -= 1
                assert self.free[account] >= 0, f"account {account} has no credit for this flit"
            if dut.freed.value == 1:
                self.free[int(dut.freed_account.value)] += 1
            COVER.when(min(self.free[: self.cfg.queues]) == 0, "no credits")
            self.give()
            if dut.moves.value == 1 and dut.last.value == 1:
                self.times.append(self.cycle)
            for port in (dut.bad_unit, dut.bad_packet, dut.overrun):
                assert port.value == 0, f"{port._name} of what was sent as it should be"
            dut.hold.value = int(next(self.hold))

    def rate(self) -> float:
        """Share of the line's flits that moved, without the first and the last ones."""
        times = self.times[40:-40]
        return (len(times) - 1) * self.cfg.beats / (times[-1] - times[0])

    async def all_through(self) -> None:
        """Wait until everything has come out and all credits are back."""
        await self.source.drained()
        while any(self.waiting):
            await RisingEdge(self.clk)
        await self.cycles(40)
        full = [DEDICATED_FLITS] * self.cfg.queues + [self.cfg.shared_flits] * 2
        assert self.free == full, f"credits at rest are {self.free}"


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(
    (
        ("source", "hold", "requests", "responses"),
        [
            ("never", "never", "never", "never"),
            ("never", "half", "rarely", "mostly"),
            ("rarely", "bursty", "mostly", "half"),
            ("bursty", "rarely", "bursty", "never"),
        ],
    )
)
async def packets_go_through(dut, source: str, hold: str, requests: str, responses: str) -> None:
    bench = FramingBench(dut, source, hold, (requests, responses))
    await bench.start()
    cocotb.start_soon(bench.watch())
    bench.send([random_packet(bench.rng, bench.cfg.classes, 3) for _ in range(400)])
    await bench.all_through()
    COVER.when(bench.got.all(), "all queues")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def responses_pass_requests_that_wait(dut) -> None:
    """Nobody takes requests until all their credits are gone; responses come all the same."""
    bench = FramingBench(dut)
    await bench.start()
    stalled = bench.sinks[0].stall
    bench.sinks[0].stall = iter(lambda: True, False)
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    for n in range(3 * bench.cfg.shared_flits):
        for class_ in range(bench.cfg.classes):
            if n < 8:
                bench.send([make_packet(rng, PacketOpcode.WRITE, 400, False, class_, n)])
            bench.send([make_packet(rng, PacketOpcode.READ_RESPONSE, 400, False, class_, n)])
    while any(bench.waiting[q] for q in range(1, bench.cfg.queues, 2)):
        await RisingEdge(bench.clk)
    COVER.hit("requests wait, responses come")
    bench.sinks[0].stall = stalled
    await bench.all_through()


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(size=[0, 64, 200, 325, 512], packed=[False, True])
async def line_rate(dut, size: int, packed: bool) -> None:
    """Packets without gaps, each alone in its unit or not: a flit in each flit time, end to end."""
    bench = FramingBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    count = 500 if packed and size < 50 else 200
    bench.send(
        [make_packet(bench.rng, 0, size, False, 0 if packed else n % 2, 0 if packed else n) for n in range(count)]
    )
    await bench.all_through()
    rate = bench.rate()
    dut._log.info("%d bytes: %.3f of the flits of the line", size, rate)
    assert rate >= 0.99, f"{size} bytes: {rate:.3f} of the line's flits"
    COVER.hit("line rate")


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(queues=[1, 3])
async def line_rate_of_mixed_packets(dut, queues: int) -> None:
    """The same with sizes at random."""
    bench = FramingBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    sizes = rng.choice([0, 4, 8, 64, 100, 200, 300, 448, 512], 300) if queues == 1 else rng.integers(0, 513, 300)
    opcodes = [(PacketOpcode.WRITE, 0), (PacketOpcode.READ_RESPONSE, 0), (PacketOpcode.WRITE, 1)][:queues]
    for size in sizes:
        opcode, class_ = opcodes[int(rng.integers(queues))]
        bench.send([make_packet(rng, opcode, int(size), False, class_, 0)])
    await bench.all_through()
    rate = bench.rate()
    assert rate >= 0.99, f"{queues} queues: {rate:.3f} of the line's flits"


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
