"""A stream's two ends: a source that offers payloads and a sink that takes them.

Payloads are integers: pack a layout with `layout.const({...}).as_bits()` or a contract word, open one
with `opened(layout)`. Values are read right after the rising edge, as they were before it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import cocotb
from cocotb.triggers import RisingEdge

from verif.agents.bench import Bench
from verif.agents.stall import never

__all__ = ["StreamSink", "StreamSource"]


class StreamSource:
    """Drives `<name>__payload`, `__valid`; keeps what it offers until it is taken."""

    def __init__(self, bench: Bench, name: str, stall: Iterator[bool] | None = None):
        self.payload = getattr(bench.dut, f"{name}__payload")
        self.valid = getattr(bench.dut, f"{name}__valid")
        self.ready = getattr(bench.dut, f"{name}__ready")
        self.stall = stall if stall is not None else never()
        self.queue: deque[int] = deque()
        self.sent = 0
        self.on_sent: Callable[[int], None] | None = None
        self.clk = bench.clk
        self.valid.value = 0
        self._task = cocotb.start_soon(self._drive())

    def send(self, payloads: Iterable[int]) -> None:
        """Queue payloads."""
        self.queue.extend(payloads)

    async def drained(self) -> None:
        """Wait until all that was queued has been taken."""
        while self.queue:
            await RisingEdge(self.clk)

    async def _drive(self) -> None:
        offering = False
        edge = RisingEdge(self.clk)
        while True:
            await edge
            if offering and self.ready.value == 1:
                word = self.queue.popleft()
                self.sent += 1
                if self.on_sent is not None:
                    self.on_sent(word)
                offering = False
            if not offering:
                if self.queue and not next(self.stall):
                    self.payload.value = self.queue[0]
                    self.valid.value = 1
                    offering = True
                else:
                    self.valid.value = 0


class StreamSink:
    """Drives `<name>__ready`; `taken` holds the payloads in order, `on_taken` hears of each."""

    def __init__(self, bench: Bench, name: str, stall: Iterator[bool] | None = None):
        self.payload = getattr(bench.dut, f"{name}__payload")
        self.valid = getattr(bench.dut, f"{name}__valid")
        self.ready = getattr(bench.dut, f"{name}__ready")
        self.stall = stall if stall is not None else never()
        self.taken: list[int] = []
        self.on_taken: Callable[[int], None] | None = None
        self.clk = bench.clk
        self.ready.value = 0
        self._task = cocotb.start_soon(self._take())

    async def count(self, number: int) -> None:
        """Wait until `number` payloads have been taken since the start."""
        while len(self.taken) < number:
            await RisingEdge(self.clk)

    async def _take(self) -> None:
        willing = False
        edge = RisingEdge(self.clk)
        while True:
            await edge
            if willing and self.valid.value == 1:
                word = int(self.payload.value)
                self.taken.append(word)
                if self.on_taken is not None:
                    self.on_taken(word)
            willing = not next(self.stall)
            self.ready.value = int(willing)
