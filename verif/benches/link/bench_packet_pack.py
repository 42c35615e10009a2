"""PacketPack: packets of a DMA, header beat and payload beats, come out without the gap, whole and in order."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import PacketOpcode
from verif.agents.bench import Bench
from verif.agents.stall import styled
from verif.agents.stream import StreamSink, StreamSource
from verif.bench import EVERY, Run
from verif.benches.link.packets import Assembler, beats_of, dma_beats_of, make_packet, random_packet
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet

RUNS = (Run("packet_pack", config="x8", faults=EVERY), Run("packet_pack", config="x16", faults=EVERY))

COVER = Coverage("port.packet_pack", ["a header alone", "a rest", "no rest", "too short", "too long", "no gap"])


class PackBench(Bench):
    """Source of DMA beats, sink of a port's beats."""

    def __init__(self, dut: Any, source: str = "never", sink: str = "never"):
        super().__init__(dut)
        self.source = StreamSource(self, "i", styled(source, self.rng))
        self.sink = StreamSink(self, "o", styled(sink, self.rng))

    def send(self, packets: list[Packet]) -> None:
        """Queue packets."""
        for packet in packets:
            beats = dma_beats_of(packet, self.rng)
            self.source.send(beats)
            COVER.when(len(beats) == 1, "a header alone")
            ends = len(packet.data) % self.cfg.beat_bytes
            COVER.when(len(packet.data) > self.cfg.beat_bytes and 0 < ends <= 16, "a rest")
            COVER.when(len(beats) > 1 and not 0 < ends <= 16, "no rest")

    def came(self) -> list[list[int]]:
        """Beats that came, by packet; what stands behind the end is cut off."""
        out: list[list[int]] = []
        for word in self.sink.taken:
            if word & 1:
                out.append([])
            out[-1].append(word)
        return out

    async def all_out(self, packets: int) -> None:
        """Wait for the last beat of so many packets."""
        await self.source.drained()
        while sum(word >> 1 & 1 for word in self.sink.taken) < packets:
            await RisingEdge(self.clk)
        await self.cycles(4)


def _same(word: int, golden: int, size: int) -> bool:
    """Equal but for bytes behind the `size` first ones of the beat."""
    mask = (1 << (17 + 8 * size)) - 1
    return word & mask == golden & mask


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(
    (("source", "sink"), [("never", "never"), ("rarely", "half"), ("half", "never"), ("bursty", "bursty")])
)
async def packs(dut: Any, source: str, sink: str) -> None:
    bench = PackBench(dut, source, sink)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    packets = [random_packet(rng, cfg.classes, 4000) for _ in range(300)]
    packets += [make_packet(rng, PacketOpcode.WRITE, n, bool(n % 3 == 0), n % cfg.classes) for n in range(130)]
    bench.send(packets)
    await bench.all_out(len(packets))
    came = bench.came()
    assert len(came) == len(packets)
    for packet, words in zip(packets, came, strict=True):
        golden = beats_of(packet, cfg)
        assert len(words) == len(golden), f"{packet}: {len(words)} beats"
        for n, (word, want) in enumerate(zip(words, golden, strict=True)):
            here = min(cfg.beat_bytes, len(packet.data) - n * cfg.beat_bytes)
            assert _same(word, want, here), f"{packet}: beat {n} is {word:x}, {want:x} was expected"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_beat_a_cycle(dut: Any) -> None:
    """The DMA's stream is never held up for more than a cycle."""
    bench = PackBench(dut)
    await bench.start()
    for size in (0, 8, 64, 100, 212, 448, 512):
        packets = [make_packet(bench.rng, PacketOpcode.WRITE, size) for _ in range(40)]
        beats = sum(len(dma_beats_of(p)) for p in packets)
        bench.sink.taken.clear()
        bench.send(packets)
        took = 0
        while bench.source.queue:
            await RisingEdge(bench.clk)
            took += 1
        assert took <= beats + 3, f"{size} bytes: {beats} beats took {took} cycles"
        await bench.all_out(len(packets))
    COVER.hit("no gap")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def what_has_another_length_stays_wrong(dut: Any) -> None:
    """Too few and too many beats: the packet has a wrong number of them behind, too, and the next one is right."""
    bench = PackBench(dut, "rarely", "half")
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    for round_ in range(200):
        packet = make_packet(rng, PacketOpcode.WRITE, int(rng.integers(1, 513)))
        beats = dma_beats_of(packet)
        if round_ % 2:
            beats = [*[b & ~2 for b in beats], *[(beats[-1] & ~3)] * int(rng.integers(3)), beats[-1] & ~1 | 2]
        else:
            beats = beats[: int(rng.integers(1, len(beats)))]
            beats[-1] |= 2
        bench.sink.taken.clear()
        bench.source.send(beats)
        after = make_packet(rng, PacketOpcode.READ_RESPONSE, int(rng.integers(300)))
        bench.send([after])
        await bench.all_out(2)
        wrong, right = bench.came()
        assert len(wrong) != len(beats_of(packet, cfg)), f"{packet}: {len(wrong)} beats are as many as it should have"
        COVER.hit("too long" if round_ % 2 else "too short")
        last = len(after.data) - (len(right) - 1) * cfg.beat_bytes
        mask = (1 << (17 + 8 * last)) - 1
        assembler = Assembler(cfg)
        for word in [*right[:-1], right[-1] & mask]:
            assembler.beat(word)
        assert assembler.packets == [after]


@cocotb.test()
async def covered(dut: Any) -> None:
    COVER.require_all()
