"""SBUF as the DMA's movers see it: 16 bytes each way a cycle for each group of partitions."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from rtl.contract.descriptor import DmaAdd
from rtl.contract.timing import SBUF_ADD_CYCLES
from verif.agents.bench import Bench
from verif.agents.stall import never
from verif.golden.dma import added

__all__ = ["MoverPorts"]

PLACES = 4  # of sums under way, as SBUF has


class MoverPorts:
    """Serves `mover[e]` of the design from `memory` (P, partition_bytes).

    `stall()` makes one stall generator for each read and each write port. Reads of a cycle see the bytes
    before its writes. `reads` and `writes` count what was accepted, `refused` what was not.
    Sums commit in the order of their port, SBUF_ADD_CYCLES after they were accepted or `late()` cycles more, and are
    told then.
    """

    def __init__(
        self,
        bench: Bench,
        memory: NDArray[np.uint8],
        stall: Callable[[], Iterator[bool]] = never,
        late: Callable[[], int] = lambda: 0,
    ):
        cfg = bench.cfg
        self.memory = memory
        self.group = cfg.partitions // cfg.dma.engines
        self.clk = bench.clk
        self.reads = 0
        self.writes = 0
        self.refused = 0
        self.sums = 0
        self.late = late
        fields = ("valid", "ready", "lane", "pair", "data", "data_valid")
        self.read_ports = [self._port(bench, e, "read", fields) for e in range(cfg.dma.engines)]
        fields = ("valid", "ready", "lane", "pair", "data", "bytes", "add", "last", "done")
        self.write_ports = [self._port(bench, e, "write", fields) for e in range(cfg.dma.engines)]
        self.stalls = [(stall(), stall()) for _ in range(cfg.dma.engines)]
        self.open: list[deque[_Sum]] = [deque() for _ in self.write_ports]
        for port in (*self.read_ports, *self.write_ports):
            port["ready"].value = 0
        for port in self.write_ports:
            port["done"].value = 0
        self._task = cocotb.start_soon(self._run())

    @staticmethod
    def _port(bench: Bench, e: int, side: str, fields: tuple[str, ...]) -> dict[str, Any]:
        return {f: getattr(bench.dut, f"mover__{e}__{side}_{f}") for f in fields}

    async def _run(self) -> None:
        edge = RisingEdge(self.clk)
        count = len(self.stalls)
        reading = [False] * count
        writing = [False] * count
        shown = [False] * count
        told = [False] * count
        while True:
            await edge
            for e, port in enumerate(self.read_ports):
                if port["valid"].value == 1 and reading[e]:
                    row, at = self._place(e, port)
                    port["data"].value = int.from_bytes(row[at : at + 16].tobytes(), "little")
                    port["data_valid"].value = 1
                    shown[e] = True
                    self.reads += 1
                elif shown[e]:
                    port["data_valid"].value = 0
                    port["data"].value = 0
                    shown[e] = False
            for e, port in enumerate(self.write_ports):
                tell = self._commit(e)
                if tell != told[e]:
                    told[e] = tell
                    port["done"].value = int(tell)
                if port["valid"].value == 1:
                    if writing[e]:
                        self._write(e, port)
                    else:
                        self.refused += 1
            for e, (read, write) in enumerate(self.stalls):
                able = not next(read)
                if able != reading[e]:
                    reading[e] = able
                    self.read_ports[e]["ready"].value = int(able)
                able = not next(write) and len(self.open[e]) < PLACES
                if able != writing[e]:
                    writing[e] = able
                    self.write_ports[e]["ready"].value = int(able)

    def _place(self, e: int, port: dict[str, Any]) -> tuple[NDArray[np.uint8], int]:
        return self.memory[e * self.group + int(port["lane"].value)], 16 * int(port["pair"].value)

    def _commit(self, e: int) -> bool:
        """A cycle of the sums of a port; whether one that was the last of its row has come to its end."""
        waiting = self.open[e]
        for one in waiting:
            one.cycles -= 1
        if not waiting or waiting[0].cycles > 0:
            return False
        one = waiting.popleft()
        one.write()
        return one.last

    def _write(self, e: int, port: dict[str, Any]) -> None:
        row, at = self._place(e, port)
        data = np.frombuffer(int(port["data"].value).to_bytes(16, "little"), np.uint8)
        mask = int(port["bytes"].value)
        chosen = np.array([bool(mask >> b & 1) for b in range(16)])
        self.writes += 1
        add = DmaAdd(int(port["add"].value))
        here = row[at : at + 16]
        if add != DmaAdd.COPY:
            self.sums += 1
            last = bool(int(port["last"].value))
            self.open[e].append(_Sum(here, data, chosen, add, last, SBUF_ADD_CYCLES - 1 + self.late()))
            return
        for one in self.open[e]:  # a copy to the same bytes comes behind them
            if np.shares_memory(one.here, here):
                one.write()
        here[chosen] = data[chosen]


@dataclass
class _Sum:
    """16 bytes that are added to `here` in so many cycles."""

    here: NDArray[np.uint8]
    data: NDArray[np.uint8]
    chosen: NDArray[np.bool_]
    add: DmaAdd
    last: bool
    cycles: int

    def write(self) -> None:
        """Once."""
        self.here[self.chosen] = added(self.here, self.data, self.add)[self.chosen]
        self.chosen = np.zeros(16, bool)
