"""Classes of transfers to other cores do not hold each other up: neither one that HBM fails nor one without room."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.config_sections import DMA_CLASSES
from rtl.contract.isa import Cause, Update
from rtl.contract.memmap import Space, address
from verif.bench import Run, noticed_by
from verif.benches.dma.endpoint_driver import EndpointBench
from verif.benches.dma.requests import CORE
from verif.benches.dma.transfers import FAR
from verif.checks.coverage import Coverage
from verif.golden.endpoint import Peer

_FAULTS = (
    *noticed_by("an_error_of_hbm_is_that_of_its_class", "what HBM fails of a class is not sent, nor what others send"),
    *noticed_by(
        "a_class_without_room_holds_nobody",
        "a packet leaves whether its class has room or not",
        "a class takes the places of others that have none",
        "rows to other cores go on where that of another class was",
    ),
)

RUNS = (
    Run(
        "dma",
        options={"link": True},
        config=load("tiny", ["dma.rings=8"]),
        faults=_FAULTS,
        seeds=(1,),
    ),
)

COVERAGE = Coverage("endpoint classes", ["good one ends first", "failed one ends first", "several rows", "no room"])
BAD = 0x20000
GOOD = 0x30000


def sends(at: int, to: int, rows: int, size: int, class_: int, value: int) -> dict[str, int]:
    """Rows, one behind the other, to HBM of the far core, with a signal there."""
    return {
        "source": address(Space.HBM, at, core_id=CORE),
        "destination": address(Space.HBM, to, core_id=FAR),
        "row_bytes": size,
        "class_": class_,
        **{"count0": rows, "count1": 1, "count2": 1, "source_step0": size, "destination_step0": size},
        **{"signal_update": Update.ADD, "signal_value": value},
        "signal_address": address(Space.SEMAPHORES, 4, core_id=FAR),
    }


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def an_error_of_hbm_is_that_of_its_class(dut: Any) -> None:
    bench = EndpointBench(dut)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    sbuf = np.zeros((cfg.partitions, cfg.sbuf.partition_bytes), np.uint8)
    bench.far = far = Peer(cfg, FAR, np.zeros(cfg.hbm.capacity_mib << 20, np.uint8), sbuf)
    arrived: list[int] = []
    bench.far_checks = [arrived.append]
    bench.agent.bad = range(BAD, BAD + 16)
    for n in range(24):
        rows = [int(r) for r in rng.integers(1, 7, 2)]
        sizes = [int(s) for s in rng.integers(100, 1500, 2)]
        classes = [int(c) for c in rng.permutation(4)[:2]]
        ends: list[int] = []
        bench.host.on_completed = ends.append
        arrived.clear()
        good = sends(GOOD, 0x40000, rows[1], sizes[1], classes[1], 2 * n + 1)
        for ring, d in enumerate((sends(BAD, 0x8000, rows[0], sizes[0], classes[0], 2 * n), good)):
            bench.host.submit(ring, [d])
        await bench.host.idle()
        await bench.quiet()
        assert bench.host.fault(0)[0] == Cause.BUS_ERROR
        assert bench.host.fault(1)[0] == Cause.NONE, f"{bench.host.fault(1)} of class {classes[1]}, {classes[0]} failed"
        assert arrived == [2 * n + 1], f"signals {arrived} arrived"
        size = rows[1] * sizes[1]
        got = far.window(good["destination"], size).tobytes()
        assert got == bench.hbm[GOOD : GOOD + size].tobytes(), f"{rows[1]} rows of {sizes[1]} bytes"
        far.window(good["destination"], size)[:] = 0
        COVERAGE.hit("good one ends first" if size < rows[0] * sizes[0] else "failed one ends first")
        COVERAGE.when(min(rows) > 1, "several rows")
        await bench.host.restart()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_class_without_room_holds_nobody(dut: Any) -> None:
    """Its writes and reads wait, more of them than there are places; those of all others end. Then they end too."""
    bench = EndpointBench(dut, stalls="never")
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    sbuf = np.zeros((cfg.partitions, cfg.sbuf.partition_bytes), np.uint8)
    far_hbm = rng.integers(0, 256, cfg.hbm.capacity_mib << 20, np.uint8)
    bench.far = far = Peer(cfg, FAR, far_hbm, sbuf)
    bench.far_checks = [lambda value: None]
    for class_ in rng.permutation(DMA_CLASSES):
        dut.request_room.value = ((1 << DMA_CLASSES) - 1) & ~(1 << int(class_))
        bench.left = [0] * DMA_CLASSES
        copies: list[tuple[int, int, int]] = []
        before = list(bench.host.completed)
        order = [int(class_), *(c for c in range(DMA_CLASSES) if c != class_)]
        for ring, c in enumerate(order):
            rows = 100 if c == class_ else 12
            d = sends(0x20000 + 0x20000 * c, 0x100000 + 0x20000 * c, rows, 700, c, 2 * c)
            read = d | {"source": address(Space.HBM, 0x200000 + 0x20000 * c, core_id=FAR)}
            read |= {"destination": address(Space.HBM, 0x180000 + 0x20000 * c, core_id=CORE)}
            read |= {"signal_address": address(Space.SEMAPHORES, 4, core_id=CORE)}
            bench.signals[1000 * (c + 1)] = (1, Update.ADD, [])
            copies.append((0x20000 + 0x20000 * c, 0x180000 + 0x20000 * c, rows * 700))
            bench.host.submit(2 * ring, [d])
            bench.host.submit(2 * ring + 1, [read | {"signal_value": 1000 * (c + 1)}])
            if c == class_:
                await bench.cycles(2000)
        for _ in range(600):
            await bench.cycles(50)
            ended = [now - then for now, then in zip(bench.host.completed, before, strict=True)]
            if all(ended[2:8]):
                break
        assert ended[:8] == [0, 0, 1, 1, 1, 1, 1, 1], f"descriptors of classes {order} that ended: {ended}"
        assert not bench.left[class_], f"{bench.left[class_]} packets of class {class_} left without room"
        COVERAGE.hit("no room")
        dut.request_room.value = (1 << DMA_CLASSES) - 1
        await bench.host.idle()
        await bench.quiet()
        for c, (wrote, read_to, size) in zip(order, copies, strict=True):
            there = far.window(address(Space.HBM, 0x100000 + 0x20000 * c, core_id=FAR), size)
            assert np.array_equal(there, bench.hbm[wrote : wrote + size]), f"what class {c} wrote"
            come = far.window(address(Space.HBM, 0x200000 + 0x20000 * c, core_id=FAR), size)
            assert np.array_equal(come, bench.hbm[read_to : read_to + size]), f"what class {c} read"
            there[:] = come[:] = 0
        await bench.host.restart()


@cocotb.test()
async def covered(dut: Any) -> None:
    COVERAGE.require_all()
