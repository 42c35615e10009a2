"""The issue unit as the DMA sees it: releases, descriptors, semaphore updates, ring status."""

from collections.abc import Callable, Iterator, Mapping

import cocotb
from cocotb.triggers import RisingEdge

from rtl.base.dma_port import RELEASE, SEMAPHORE_UPDATE, copy_ring, ring_count
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import COPY_QUEUES, Cause
from rtl.contract.timing import STALLS, Engine
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stall import never
from verif.agents.stream import StreamSink, StreamSource

__all__ = ["DmaHost"]

_UPDATE = opened(SEMAPHORE_UPDATE)


_MOVING = [2 + STALLS[Engine.DMA].index(cause) for cause in ("hbm_latency", "commit")]
"""States of the DMA in which a mover must have work."""


class DmaHost:
    """`submit` queues and releases descriptors; `signals` holds (index, update, value) in order.

    `completed[r]` counts the pulses of ring r; `on_signal` and `on_completed(r)` hear of each.
    """

    def __init__(self, bench: Bench, stall: Callable[[], Iterator[bool]] = never):
        self.bench = bench
        self.dut = bench.dut
        self.clk = bench.clk
        self.rings = [StreamSource(bench, f"ring__{r}", stall()) for r in range(ring_count(bench.cfg))]
        self.releases = StreamSource(bench, "release", stall())
        self.sink = StreamSink(bench, "signal", stall())
        self.sink.on_taken = self._signalled
        self.signals: list[tuple[int, int, int]] = []
        self.completed = [0] * len(self.rings)
        self.read_bytes = 0
        self.written_bytes = 0
        self.states: dict[str, int] = {}
        self.on_signal: Callable[[tuple[int, int, int]], None] | None = None
        self.on_completed: Callable[[int], None] | None = None
        self.dut.start.value = 0
        self.clears = hasattr(self.dut, "clear")  # it has a link
        if self.clears:
            self.dut.clear.value = 0
        self.dut.core_id.value = 0
        self._task = cocotb.start_soon(self._watch())

    def submit(self, ring: int, descriptors: list[Mapping[str, int]]) -> None:
        """Give descriptors to a ring and release them, if it needs that."""
        self.rings[ring].send(DESCRIPTOR.pack(d) for d in descriptors)
        if ring < self.bench.cfg.dma.rings:
            self.release(ring, len(descriptors))

    def release(self, ring: int, count: int) -> None:
        """Release `count` descriptors."""
        self.releases.send([RELEASE.const({"ring": ring, "count": count}).as_bits()])

    async def restart(self, *, clear: bool = True) -> None:
        """Pulse `start` for a cycle, `clear` with it if there is a link; forgets what was queued."""
        for r, source in enumerate(self.rings):
            source._task.cancel()
            self.rings[r] = StreamSource(self.bench, f"ring__{r}", source.stall)
        self.dut.start.value = 1
        if self.clears:
            self.dut.clear.value = int(clear)
        await RisingEdge(self.clk)
        self.dut.start.value = 0
        if self.clears:
            self.dut.clear.value = 0
        await RisingEdge(self.clk)

    async def clear(self) -> None:
        """Pulse `clear` for a cycle."""
        self.dut.clear.value = 1
        await RisingEdge(self.clk)
        assert self.dut.active.value == 1, "the clock would not run for a clear"
        self.dut.clear.value = 0
        await RisingEdge(self.clk)

    async def idle(self) -> None:
        """Wait until everything submitted has come to its end."""
        await self.releases.drained()
        for r in range(self.bench.cfg.dma.rings, len(self.rings)):  # nothing is released there
            while self.rings[r].queue and not self.fault(r)[0]:
                await RisingEdge(self.clk)
        for _ in range(4):
            await RisingEdge(self.clk)
        while self.dut.active.value == 1 or self.busy:
            await RisingEdge(self.clk)

    @property
    def busy(self) -> bool:
        """A ring still has something to do."""
        return any(getattr(self.dut, f"ring_status__{r}__busy").value == 1 for r in range(len(self.rings)))

    def fault(self, ring: int) -> tuple[int, int, int]:
        """(cause, sequence, address) of a ring."""
        fields = ("cause", "sequence", "address")
        return tuple(int(getattr(self.dut, f"ring_status__{ring}__{f}").value) for f in fields)  # type: ignore[return-value]

    def _signalled(self, bits: int) -> None:
        update = _UPDATE(bits)
        entry = (int(update.index), int(update.update), int(update.value))
        self.signals.append(entry)
        if self.on_signal is not None:
            self.on_signal(entry)

    async def _watch(self) -> None:
        edge = RisingEdge(self.clk)
        pulses = [getattr(self.dut, f"ring_status__{r}__completed") for r in range(len(self.rings))]
        read = self.dut.hbm_read_bytes
        written = self.dut.hbm_written_bytes
        holds = self.dut.status__holds
        state = self.dut.status__state
        active, start, reset = self.dut.active, self.dut.start, self.dut.rst
        faults = [getattr(self.dut, f"ring_status__{r}__cause") for r in range(len(pulses))]
        cfg = self.bench.cfg
        traced = [*range(cfg.dma.rings), *(copy_ring(cfg, queue) for queue in COPY_QUEUES)]
        busy = [getattr(self.dut, f"ring_status__{r}__busy") for r in range(len(pulses))]
        under_way = [0] * len(pulses)  # descriptors that were taken and have not ended
        takes = [[getattr(self.dut, f"ring__{r}__{name}") for name in ("valid", "ready")] for r in range(len(pulses))]
        while True:
            await edge
            # what a trace is told: in the cycle itself, ring by ring
            taken = sum(1 << r for r, pair in enumerate(takes) if all(pin.value == 1 for pin in pair))
            ended = sum(1 << r for r, pulse in enumerate(pulses) if pulse.value == 1)
            told = (int(self.dut.begins.value), int(self.dut.ends.value))
            want = [sum((rings >> r & 1) << n for n, r in enumerate(traced)) for rings in (taken, ended)]
            assert told[0] == want[0], "a trace is not told which ring's descriptor is taken"
            assert told[1] == want[1], "a trace is not told which ring's descriptor has completed"
            if start.value == 1 or reset.value == 1:
                under_way = [0] * len(pulses)
            for r, fault in enumerate(faults):
                if under_way[r] and int(fault.value) == Cause.NONE:
                    assert busy[r].value == 1, f"a descriptor of ring {r} is under way, and the ring is not busy"
                under_way[r] += (taken >> r & 1) - (ended >> r & 1)
                if under_way[r] and int(fault.value) == Cause.NONE:
                    assert active.value == 1, f"the clock would stop while a descriptor of ring {r} is under way"
            if holds.value == 1 and int(state.value) in _MOVING:
                assert int(self.dut.movers_busy.value), "no mover is busy, and their work is what the DMA waits for"
            if active.value == 0 and reset.value == 0:
                assert int(self.dut.movers_busy.value) == 0, "a mover is busy, and the DMA has nothing to do"
            for r, pulse in enumerate(pulses):
                if pulse.value == 1:
                    self.completed[r] += 1
                    if self.on_completed is not None:
                        self.on_completed(r)
            self.read_bytes += int(read.value)
            self.written_bytes += int(written.value)
            key = int(state.value) if holds.value == 1 else -1
            self.states[key] = self.states.get(key, 0) + 1
