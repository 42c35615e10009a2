"""The memory side of an AXI read port: random latency, answers of different ids mixed, errors on demand."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from verif.agents.bench import Bench
from verif.agents.stall import never

__all__ = ["AxiReadMemory"]


@dataclass
class _Burst:
    address: int
    beats: int
    beat: int
    due: int


class AxiReadMemory:
    """Answers the reads of the manager `<name>__ar...`: in order for one id, in any order between ids.

    `read(address, bytes)` gives the data; it raises LookupError where the answer is to be an error.
    Latency is `latency` cycles and up to `jitter` more; `stall` holds back AR, `idle` holds back R.
    Breaks of the protocol fail the test: a request that changes before it is accepted, a burst that is
    not INCR and full width, or one that crosses 4 KiB.
    """

    def __init__(
        self,
        bench: Bench,
        name: str,
        port_bytes: int,
        read: Callable[[int, int], bytes],
        *,
        latency: int = 10,
        jitter: int = 0,
        stall: Iterator[bool] | None = None,
        idle: Iterator[bool] | None = None,
        mixed: bool = True,
    ):
        self.s = {
            part: getattr(bench.dut, f"{name}__{part}")
            for part in ("arvalid", "arready", "arid", "araddr", "arlen", "arsize", "arburst")
            + ("rvalid", "rready", "rid", "rdata", "rresp", "rlast")
        }
        self.port_bytes = port_bytes
        self.read = read
        self.rng: np.random.Generator = np.random.default_rng(int(bench.rng.integers(1 << 32)))
        self.latency = latency
        self.jitter = jitter
        self.stall = stall if stall is not None else never()
        self.idle = idle if idle is not None else never()
        self.mixed = mixed
        self.requests: list[tuple[int, int]] = []  # (id, address), as accepted
        self.first_request: int | None = None  # cycle, counted from this agent's start
        self.beats = 0
        self.now = 0
        self.pending: dict[int, deque[_Burst]] = {}
        self.clk = bench.clk
        self.s["arready"].value = 0
        self.s["rvalid"].value = 0
        self._task = cocotb.start_soon(self._run())

    @property
    def outstanding(self) -> int:
        """Bursts asked for and not fully answered."""
        return sum(len(queue) for queue in self.pending.values())

    def _accept(self) -> tuple[int, int]:
        address, who = int(self.s["araddr"].value), int(self.s["arid"].value)
        beats = int(self.s["arlen"].value) + 1
        assert int(self.s["arburst"].value) == 1, "a burst is not INCR"
        assert 1 << int(self.s["arsize"].value) == self.port_bytes, "a beat is not of full width"
        assert address % self.port_bytes == 0, f"burst at {address:#x} is not aligned to a beat"
        assert address // 4096 == (address + beats * self.port_bytes - 1) // 4096, "a burst crosses 4 KiB"
        due = self.now + self.latency + int(self.rng.integers(self.jitter + 1))
        self.pending.setdefault(who, deque()).append(_Burst(address, beats, 0, due))
        self.requests.append((who, address))
        return address, who

    def _answer(self, current: int | None) -> int | None:
        """Put the next beat on R; the id it is of, None if nothing is due."""
        ready = [who for who, queue in self.pending.items() if queue and queue[0].due <= self.now]
        if not ready or next(self.idle):
            self.s["rvalid"].value = 0
            return None
        if current in ready and not self.mixed and self.pending[current][0].beat:
            who = current
        else:
            who = ready[int(self.rng.integers(len(ready)))]
        burst = self.pending[who][0]
        try:
            data = self.read(burst.address + burst.beat * self.port_bytes, self.port_bytes)
            response = 0
        except LookupError:
            data, response = bytes(self.port_bytes), 2
        self.s["rvalid"].value = 1
        self.s["rid"].value = who
        self.s["rdata"].value = int.from_bytes(data, "little")
        self.s["rresp"].value = response
        self.s["rlast"].value = int(burst.beat == burst.beats - 1)
        return who

    async def _run(self) -> None:
        edge = RisingEdge(self.clk)
        s = self.s
        willing = False
        waiting: tuple[int, int] | None = None
        offered: int | None = None
        last: int | None = None
        while True:
            await edge
            self.now += 1
            if s["arvalid"].value == 1:
                request = int(s["araddr"].value), int(s["arid"].value)
                assert waiting in (None, request), "a request changed before it was accepted"
                if self.first_request is None:
                    self.first_request = self.now
                waiting = request
                if willing:
                    self._accept()
                    waiting = None
            else:
                assert waiting is None, "a request went away before it was accepted"
            if offered is not None and s["rready"].value == 1:
                burst = self.pending[offered][0]
                burst.beat += 1
                self.beats += 1
                if burst.beat == burst.beats:
                    self.pending[offered].popleft()
                last, offered = offered, None
            if offered is None:
                offered = self._answer(last)
            willing = not next(self.stall)
            s["arready"].value = int(willing)
