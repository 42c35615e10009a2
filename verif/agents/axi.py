"""A lean HBM behind one or more AXI4 managers: latency, shared bandwidth, errors by address.

For throughput and error tests; protocol checks are cocotbext-axi's and the native driver's. One
coroutine for all ports, payloads are read on a handshake only.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from verif.agents.bench import Bench

__all__ = ["HbmAgent"]

OKAY = 0
SLVERR = 2
URGENT_QOS = 8  # and above


_Store = tuple[int, bytes, int]
"""Address, bytes and strobes of a beat."""


@dataclass
class _Port:
    signals: dict[str, Any]
    reads: tuple[deque[list[int]], deque[list[int]]]  # [due, address, beats, id]; the second ones are urgent
    writes: deque[list[int]] = field(default_factory=deque)  # [address, beats, id, error, urgent]
    buffer: deque[tuple[bytes, int, int]] = field(default_factory=deque)
    answers: deque[tuple[int, int, int, list[_Store]]] = field(default_factory=deque)  # due, id, code, what it writes
    stores: list[_Store] = field(default_factory=list)  # of the burst whose beats come in
    showing: bool = False
    answering: bool = False
    accepts: bool = True  # W
    open: bool = True  # AR and AW


class HbmAgent:
    """`memory` behind the managers `prefixes` of the design, as the native driver models it.

    Bursts with AxQOS of 8 to 15 go before the others (not so with `qos` False), those of one id in their order.

    AR to first beat and last W to B take `latency` cycles; each cycle grants `bandwidth` bytes over all
    ports and directions. With `commit`, each write burst takes that many cycles instead, and is not in memory before
    its answer. Addresses in `bad` answer with SLVERR. `stall` holds AR and AW back. `moved` counts
    beats of both directions.
    """

    def __init__(
        self,
        bench: Bench,
        memory: NDArray[np.uint8],
        *,
        prefixes: Sequence[str] = ("axi__0",),
        port_bytes: int,
        latency: int = 10,
        bandwidth: int = 1 << 30,
        bad: range = range(0),
        commit: Callable[[], int] | None = None,
        stall: Iterator[bool] | None = None,
        qos: bool = True,
    ):
        names = "arqos awqos araddr arid arlen arvalid arready rvalid rready rid rdata rresp rlast "
        names += "awaddr awid awlen awvalid awready wvalid wready wdata wstrb wlast bvalid bready bid bresp"
        self.memory = memory
        self.bytes = port_bytes
        self.latency = latency
        self.bandwidth = bandwidth
        self.bad = bad
        self.commit = commit
        self.moved = {"read": 0, "written": 0}
        self.clk = bench.clk
        self.ports = [
            _Port({n: getattr(bench.dut, f"{prefix}__{n}") for n in names.split()}, (deque(), deque()))
            for prefix in prefixes
        ]
        self.qos = qos
        self.stall = stall
        for port in self.ports:
            for name in ("arready", "awready", "wready"):
                port.signals[name].value = 1
            port.signals["rvalid"].value = 0
            port.signals["bvalid"].value = 0
        self._task = cocotb.start_soon(self._run())

    async def _run(self) -> None:
        edge = RisingEdge(self.clk)
        tokens = 0
        turns = [0, 0]  # those of urgent bursts are their own
        now = 0
        requesters = 2 * len(self.ports)
        while True:
            await edge
            now += 1
            for port in self.ports:
                self._accept(port, now)
            tokens = min(tokens + self.bandwidth, self.bandwidth + self.bytes - 1)
            following = list(turns)
            served: set[int] = set()
            for k in range(2 * requesters):
                urgent = k < requesters
                who = (turns[urgent] + k) % requesters
                port = self.ports[who // 2]
                write = who % 2 == 1
                if who in served or not self._wants(port, write, urgent, now):
                    continue
                if tokens < self.bytes:
                    break
                tokens -= self.bytes
                if write:
                    self._write(port, now)
                else:
                    self._read(port, urgent)
                served.add(who)
                following[urgent] = (who + 1) % requesters
            turns = following
            for port in self.ports:
                self._finish(port, now)

    @staticmethod
    def _wants(port: _Port, write: bool, urgent: bool, now: int) -> bool:
        if write:
            return bool(port.buffer and port.writes and port.writes[0][4] == urgent)
        reads = port.reads[urgent]
        return bool(not port.showing and reads and reads[0][0] <= now + 1)

    def _accept(self, port: _Port, now: int) -> None:
        s = port.signals
        if port.open and s["arvalid"].value == 1:
            address, beats, who = (int(s[n].value) for n in ("araddr", "arlen", "arid"))
            urgent = self.qos and int(s["arqos"].value) >= URGENT_QOS
            if any(before[3] == who for before in port.reads[not urgent]):
                urgent = not urgent  # what is of one id stays in order
            port.reads[urgent].append([now + self.latency, address, beats + 1, who])
        if port.open and s["awvalid"].value == 1:
            address, beats, who = (int(s[n].value) for n in ("awaddr", "awlen", "awid"))
            urgent = self.qos and int(s["awqos"].value) >= URGENT_QOS
            port.writes.append([address, beats + 1, who, OKAY, int(urgent)])
        if port.accepts and s["wvalid"].value == 1:
            data = s["wdata"].value.to_bytes(byteorder="little")
            port.buffer.append((data, int(s["wstrb"].value), int(s["wlast"].value)))
        if port.showing and s["rready"].value == 1:
            port.showing = False
        if port.answering and s["bready"].value == 1:
            port.answering = False

    def _read(self, port: _Port, urgent: bool) -> None:
        s = port.signals
        burst = port.reads[urgent][0]
        address = burst[1]
        s["rdata"].value = int.from_bytes(self.memory[address : address + self.bytes].tobytes(), "little")
        s["rid"].value = burst[3]
        s["rresp"].value = SLVERR if address in self.bad else OKAY
        s["rlast"].value = int(burst[2] == 1)
        s["rvalid"].value = 1
        port.showing = True
        burst[1] += self.bytes
        burst[2] -= 1
        if not burst[2]:
            port.reads[urgent].popleft()
        self.moved["read"] += 1

    def _write(self, port: _Port, now: int) -> None:
        burst = port.writes[0]
        data, strobe, last = port.buffer.popleft()
        address = burst[0]
        port.stores.append((address, data, strobe))
        if self.commit is None:
            self._store(port.stores)
        assert last == (burst[1] == 1), "W last is not on the last beat of its burst"
        if address in self.bad:
            burst[3] = SLVERR
        burst[0] += self.bytes
        burst[1] -= 1
        if not burst[1]:
            due = now + (self.latency if self.commit is None else self.commit())
            port.answers.append((due, burst[2], burst[3], port.stores))
            port.stores = []
            port.writes.popleft()
        self.moved["written"] += 1

    def _store(self, stores: list[_Store]) -> None:
        for address, data, strobe in stores:
            if strobe == (1 << self.bytes) - 1:
                self.memory[address : address + self.bytes] = np.frombuffer(data, np.uint8)
            else:
                for b in range(self.bytes):
                    if strobe >> b & 1:
                        self.memory[address + b] = data[b]
        stores.clear()

    def _finish(self, port: _Port, now: int) -> None:
        s = port.signals
        if not port.showing:
            s["rvalid"].value = 0
        if not port.answering:
            if port.answers and port.answers[0][0] <= now + 1:
                _, who, code, stores = port.answers.popleft()
                self._store(stores)
                s["bid"].value = who
                s["bresp"].value = code
                s["bvalid"].value = 1
                port.answering = True
            else:
                s["bvalid"].value = 0
        if self.stall is not None:
            port.open = not next(self.stall)
            s["arready"].value = int(port.open)
            s["awready"].value = int(port.open)
        accepts = len(port.buffer) < 4
        if accepts != port.accepts:
            port.accepts = accepts
            s["wready"].value = int(accepts)
