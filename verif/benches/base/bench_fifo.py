"""Fifo and RamFifo: entries come out once, in order, whoever holds back; the level counts them."""

from collections import deque

import cocotb
from cocotb.triggers import RisingEdge

from verif.agents.bench import Bench
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSink, StreamSource
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

_SHAPE = {"shape": 16, "depth": 4}

RUNS = (Run("fifo", options=_SHAPE, faults=EVERY), Run("ram_fifo", options=_SHAPE, faults=EVERY))

COVER = Coverage("base.fifo", ["empty", "full", "enters while another leaves", "streams without a pause"])


class FifoBench(Bench):
    """Source -> unit -> sink, with a deque as the model of what is inside."""

    def __init__(self, dut, source_style: str, sink_style: str):
        super().__init__(dut)
        self.source = StreamSource(self, "i", styled(source_style, self.rng))
        self.sink = StreamSink(self, "o", styled(sink_style, self.rng))
        self.inside: deque[int] = deque()
        self.source.on_sent = self.inside.append
        self.sink.on_taken = self.check
        self.capacity = self.options["depth"]

    def check(self, word: int) -> None:
        """What leaves is the oldest inside."""
        assert self.inside, f"{word:#x} left an empty FIFO"
        expected = self.inside.popleft()
        assert word == expected, f"{word:#x} left, {expected:#x} was next"

    async def watch(self) -> None:
        """Hit the bins; the level counts what is inside."""
        edge = RisingEdge(self.clk)
        streak = inside = 0
        while True:
            await edge
            taken = self.dut.i__valid.value == 1 and self.dut.i__ready.value == 1
            left = self.dut.o__valid.value == 1 and self.dut.o__ready.value == 1
            level = int(self.dut.level.value)
            assert level == inside, f"level is {level}, and {inside} are inside"
            inside += taken - left
            streak = streak + 1 if taken else 0
            COVER.when(level == 0, "empty")
            COVER.when(level >= self.capacity, "full")
            COVER.when(taken and left, "enters while another leaves")
            COVER.when(streak >= 32, "streams without a pause")


@cocotb.test(timeout_time=10, timeout_unit="us")
@cocotb.parametrize(source_style=STYLES, sink_style=STYLES)
async def keeps_order(dut, source_style: str, sink_style: str) -> None:
    bench = FifoBench(dut, source_style, sink_style)
    await bench.start()
    cocotb.start_soon(bench.watch())
    words = bench.rng.integers(0, 1 << 16, 120).tolist()
    bench.source.send(words)
    await bench.sink.count(len(words))
    assert bench.sink.taken == words
    await bench.cycles(3)
    assert dut.level.value == 0, f"level is {int(dut.level.value)} after the last entry left"


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
