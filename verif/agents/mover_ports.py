"""SBUF as the DMA's movers see it: 16 bytes each way a cycle for each group of partitions."""

from collections.abc import Callable, Iterator
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from verif.agents.bench import Bench
from verif.agents.stall import never

__all__ = ["MoverPorts"]


class MoverPorts:
    """Serves `mover[e]` of the design from `memory` (P, partition_bytes).

    `stall()` makes one stall generator for each read and each write port. Reads of a cycle see the bytes
    before its writes. `reads` and `writes` count what was accepted, `refused` what was not.
    """

    def __init__(
        self,
        bench: Bench,
        memory: NDArray[np.uint8],
        stall: Callable[[], Iterator[bool]] = never,
    ):
        cfg = bench.cfg
        self.memory = memory
        self.group = cfg.partitions // cfg.dma.engines
        self.clk = bench.clk
        self.reads = 0
        self.writes = 0
        self.refused = 0
        fields = ("valid", "ready", "lane", "pair", "data", "data_valid")
        self.read_ports = [self._port(bench, e, "read", fields) for e in range(cfg.dma.engines)]
        fields = ("valid", "ready", "lane", "pair", "data", "bytes")
        self.write_ports = [self._port(bench, e, "write", fields) for e in range(cfg.dma.engines)]
        self.stalls = [(stall(), stall()) for _ in range(cfg.dma.engines)]
        for port in (*self.read_ports, *self.write_ports):
            port["ready"].value = 0
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
                able = not next(write)
                if able != writing[e]:
                    writing[e] = able
                    self.write_ports[e]["ready"].value = int(able)

    def _place(self, e: int, port: dict[str, Any]) -> tuple[NDArray[np.uint8], int]:
        return self.memory[e * self.group + int(port["lane"].value)], 16 * int(port["pair"].value)

    def _write(self, e: int, port: dict[str, Any]) -> None:
        row, at = self._place(e, port)
        data = np.frombuffer(int(port["data"].value).to_bytes(16, "little"), np.uint8)
        mask = int(port["bytes"].value)
        self.writes += 1
        if mask == 0xFFFF:
            row[at : at + 16] = data
        else:
            chosen = [b for b in range(16) if mask >> b & 1]
            row[at : at + 16][chosen] = data[chosen]
