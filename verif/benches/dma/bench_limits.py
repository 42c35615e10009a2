"""The DMA below what is built: bursts no longer, and no more in flight, than one built for less would have."""

from dataclasses import replace
from typing import Any

import cocotb

from rtl.contract.config import Config
from verif.agents.bench import Bench
from verif.bench import Run, noticed_by
from verif.benches.dma.bench_dma import DmaBench
from verif.benches.dma.bench_hbm import HbmBench
from verif.benches.dma.descriptors import long_rows, power_row
from verif.checks.coverage import Coverage

RUNS = (
    Run(
        "dma",
        faults=(
            *noticed_by(
                "bursts_are_as_long_as_the_limit",
                "bursts from HBM are as long as is built",
                "bursts to HBM are as long as is built",
            ),
            *noticed_by("asks_for_as_much_as_the_limit", "a mover has as much in flight as is built"),
        ),
    ),
)
COVERAGE = Coverage("dma limits", [f"burst of {n}" for n in (128, 256)] + [f"buffer of {n}" for n in (512, 1024)])


def _limited(cfg: Config) -> list[Config]:
    """All powers of two that a configuration allows, up to what is built."""
    bursts = [1 << n for n in range(7, 13) if 1 << n <= cfg.dma.burst_bytes]
    buffers = [1 << n for n in range(9, 17) if 1 << n <= cfg.dma.buffer_bytes]
    pairs = [(burst, buffer) for burst in bursts for buffer in buffers if 2 * burst <= buffer]
    return [replace(cfg, dma=replace(cfg.dma, burst_bytes=a, buffer_bytes=b)) for a, b in pairs]


class Bursts:
    """Of each way, the bursts that HBM took: first address and bytes to the end of the last beat."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.ways: dict[str, list[tuple[int, int]]] = {"ar": [], "aw": []}

    async def start(self, cfg: Config) -> None:
        """Reset with the limits of `cfg`; forget what was."""
        self.bench.limit(cfg)
        if self.ways["ar"]:
            await self.bench.reset()
        else:
            await self.bench.start()
            cocotb.start_soon(self._watch())
        for bursts in self.ways.values():
            bursts.clear()

    async def _watch(self) -> None:
        names = ("valid", "ready", "addr", "len")
        ports = {way: [getattr(self.bench.dut, f"axi__0__{way}{name}") for name in names] for way in self.ways}
        while True:
            await self.bench.edge
            for way, (valid, ready, address_, length) in ports.items():
                if valid.value == 1 and ready.value == 1:
                    size = (int(length.value) + 1) * self.bench.cfg.hbm.port_bytes
                    self.ways[way].append((int(address_.value), size))


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def bursts_are_as_long_as_the_limit(dut: Any) -> None:
    """Rows of several bursts, read and written: none crosses a multiple of the limit, the longest have its length."""
    bench = DmaBench(dut)
    bursts = Bursts(bench)
    for cfg in _limited(bench.cfg):
        await bursts.start(cfg)
        await bench.run([(n % 2, long_rows(bench.cfg, n)) for n in range(4)])
        await bench.run([(0, power_row(bench.cfg, number, 12)) for number in range(2)])
        most = cfg.dma.burst_bytes
        for way, seen in bursts.ways.items():
            for at, size in seen:
                assert at // most == (at + size - 1) // most, f"{way}: {size} bytes at {at:#x} with a limit of {most}"
            assert max(size for _, size in seen) == most, f"{way}: no burst of {most} bytes"
        COVERAGE.hit(f"burst of {most}")


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def asks_for_as_much_as_the_limit(dut: Any) -> None:
    """Of an HBM that does not answer, each mover wants what the limit allows, and no more."""
    bench = HbmBench(dut)
    bench.agent.latency = 1 << 30
    bursts = Bursts(bench)
    for cfg in _limited(bench.cfg):
        await bursts.start(cfg)
        for port in bench.agent.ports:
            for reads in port.reads:
                reads.clear()
        bench.host.submit(0, [bench.rows("load", 0, 2 * bench.cfg.dma.buffer_bytes)])
        await bench.cycles(1000)
        asked = sum(size for _, size in bursts.ways["ar"])
        most = cfg.dma.engines * cfg.dma.buffer_bytes
        assert asked == most, f"{asked} bytes in flight with a limit of {most}"
        COVERAGE.hit(f"buffer of {cfg.dma.buffer_bytes}")
    COVERAGE.require_all()
