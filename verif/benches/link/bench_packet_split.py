"""PacketSplit: a port's packets come out as a DMA takes them, header beat and payload beats, whole and in order."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import PacketOpcode
from verif.agents.bench import Bench
from verif.agents.stall import styled
from verif.agents.stream import StreamSink, StreamSource
from verif.bench import EVERY, Run
from verif.benches.link.packets import beats_of, dma_beats_of, make_packet, random_packet
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet

RUNS = (Run("packet_split", config="x8", faults=EVERY), Run("packet_split", config="x16", faults=EVERY))

COVER = Coverage("port.packet_split", ["a header alone", "payload in the first beat only", "more", "no gap"])


class SplitBench(Bench):
    """Source of a port's beats, sink of DMA beats, each of which must be the next one expected."""

    def __init__(self, dut: Any, source: str = "never", sink: str = "never"):
        super().__init__(dut)
        self.source = StreamSource(self, "i", styled(source, self.rng))
        self.sink = StreamSink(self, "o", styled(sink, self.rng))
        self.expected: list[int] = []

    def send(self, packets: list[Packet]) -> None:
        """Queue packets and expect their beats."""
        for packet in packets:
            beats = beats_of(packet, self.cfg)
            golden = dma_beats_of(packet)
            self.source.send(beats)
            self.expected += golden
            COVER.when(len(golden) == 1, "a header alone")
            COVER.when(len(beats) == 1 and len(golden) > 1, "payload in the first beat only")
            COVER.when(len(beats) > 1, "more")

    async def all_out(self) -> None:
        """Wait for every beat and compare."""
        while len(self.sink.taken) < len(self.expected):
            await RisingEdge(self.clk)
        await self.cycles(4)
        assert self.sink.taken == self.expected, "other beats came than were expected"


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(
    (("source", "sink"), [("never", "never"), ("rarely", "half"), ("half", "never"), ("bursty", "bursty")])
)
async def splits(dut: Any, source: str, sink: str) -> None:
    bench = SplitBench(dut, source, sink)
    await bench.start()
    rng, classes = bench.rng, bench.cfg.classes
    bench.send([random_packet(rng, classes, 4000) for _ in range(300)])
    bench.send([make_packet(rng, PacketOpcode.WRITE, n, bool(n % 3 == 0), n % classes) for n in range(200)])
    await bench.all_out()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_beat_a_cycle(dut: Any) -> None:
    """The DMA gets a beat in each cycle."""
    bench = SplitBench(dut)
    await bench.start()
    bench.send([make_packet(bench.rng, PacketOpcode.WRITE, n % 513) for n in range(0, 4000, 37)])
    took = 0
    while len(bench.sink.taken) < len(bench.expected):
        await RisingEdge(bench.clk)
        took += 1
    assert took <= len(bench.expected) + 4, f"{len(bench.expected)} beats took {took} cycles"
    await bench.all_out()
    COVER.hit("no gap")


@cocotb.test()
async def covered(dut: Any) -> None:
    COVER.require_all()
