"""Traffic classes of the DMA: shares of its movers by weight, no class behind another that waits, first bytes."""

import itertools
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from rtl.contract.config import load
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from verif.bench import Run, noticed_by
from verif.benches.dma.bench_hbm import HBM_BYTES, HbmBench
from verif.checks.coverage import Coverage
from verif.golden.class_turn import entitled, first_class

_FAULTS = ("the deficit of a class is not charged",)
_FIRST_FAULTS = (
    *noticed_by(
        "first_bytes_of_one_class/kind=store/others=store",
        "a port has no class that goes first",
        "a port takes as many bursts before the class that goes first",
    ),
    *noticed_by("first_bytes_of_one_class/kind=across/others=across", "the crossbar has no class that goes first"),
    *noticed_by("both_lanes_tell_their_ends", "a row that ends beside one of the class that goes first is lost"),
)

_RINGS = ["dma.rings=4"]

RUNS = (
    Run("dma", config=load("tiny", _RINGS), faults=_FAULTS, seeds=(1,)),
    Run("dma", config=load("tiny", [*_RINGS, "dma.strict_class=3"]), faults=_FIRST_FAULTS, seeds=(1,)),
    Run("dma", config=load("tiny", [*_RINGS, "dma.priority=true"]), seeds=(1,), regress=True),
)

_OTHERS = ("load", "store", "across")
_FIRST = [f"first {kind} beside {others}s" for kind in ("load", "store", "copy", "across") for others in _OTHERS]
COVERAGE = Coverage("dma classes", ["load", "store", "class passes a full one", *_FIRST])
CLASSES = 4
ROW = 512
WINDOW = 64 << 10  # bytes over which shares are held


def long(bench: HbmBench, kind: str, class_: int, rounds: int) -> dict[str, int]:
    """A row for every partition, again and again, in bytes of SBUF that are the class's; "across": from the lower half
    of the partitions to the upper one."""
    stretch = address(Space.HBM, class_ * bench.cfg.partitions * ROW)
    inside = address(Space.SBUF, class_ * ROW)
    d = {"row_bytes": ROW, "class_": class_, "count0": bench.cfg.partitions, "count1": rounds, "count2": 1}
    if kind == "across":
        half = bench.cfg.partitions // 2
        steps = {"source_step0": PARTITION_STRIDE_BYTES, "destination_step0": PARTITION_STRIDE_BYTES, "count0": half}
        return d | steps | {"source": inside, "destination": inside + half * PARTITION_STRIDE_BYTES}
    load = kind == "load"
    source, destination = (stretch, inside) if load else (inside, stretch)
    steps = {True: ROW, False: PARTITION_STRIDE_BYTES}
    return d | {
        "source": source,
        "destination": destination,
        "source_step0": steps[load],
        "destination_step0": steps[not load],
    }


async def moved(bench: HbmBench, kind: str, total: int) -> list[int]:
    """Classes of the next 16-byte units that pass the movers' ports, in order, until so many bytes have."""
    way = "write" if kind == "load" else "read"
    ports = [
        [getattr(bench.dut, f"mover__{e}__{way}_{name}") for name in ("valid", "ready", "pair")]
        for e in range(bench.cfg.dma.engines)
    ]
    order: list[int] = []
    edge = RisingEdge(bench.clk)
    while len(order) * 16 < total:
        await edge
        order += [int(pair.value) * 16 // ROW for valid, ready, pair in ports if valid.value == 1 and ready.value == 1]
    return order


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(kind=["load", "store"])
async def shares_of_all_movers_are_those_of_the_weights(dut: Any, kind: str) -> None:
    """With long descriptors of all classes under way, each way; over 64 KiB a mover, within 2 %."""
    bench = HbmBench(dut)
    await bench.start()
    for c in range(CLASSES):
        bench.host.submit(c, [long(bench, kind, c, 1200)])
    await ClockCycles(bench.clk, 2000)
    order = await moved(bench, kind, WINDOW * bench.cfg.dma.engines)
    want = entitled(bench.cfg.dma)
    shares = [order.count(c) / len(order) for c in range(CLASSES)]
    dut._log.warning("%s shares %s of %s", kind, [f"{s:.4f}" for s in shares], [f"{w:.4f}" for w in want])
    assert all(abs(s - w) <= 0.02 for s, w in zip(shares, want, strict=True)), f"{shares} are not {want}"
    await stop(bench)
    COVERAGE.hit(kind)


async def stop(bench: HbmBench) -> None:
    """Reset with copies under way: the next test's HBM must not see their beats."""
    bench.dut.rst.value = 1
    await ClockCycles(bench.clk, 2)


async def first_byte(bench: HbmBench, class_: int, kind: str) -> int:
    """Cycles from the release of a short descriptor until its first 16 bytes are at their destination; its last ones
    if it copies across groups, for it needs a turn of the crossbar for each."""
    cfg = bench.cfg
    number = bench.host.completed[class_]
    place = address(Space.HBM, HBM_BYTES - (number + 1) * ROW)
    half = cfg.partitions // 2
    partition = number % half
    inside = address(Space.SBUF, partition * PARTITION_STRIDE_BYTES + CLASSES * ROW)
    source, destination = {
        "load": (place, inside),
        "store": (inside, place),
        "copy": (inside, inside + ROW),
        "across": (inside, inside + half * PARTITION_STRIDE_BYTES),
    }[kind]
    row = bench.sbuf[partition + (half if kind == "across" else 0)]
    what = bench.hbm[HBM_BYTES - (number + 1) * ROW :] if kind == "store" else row[(CLASSES + (kind == "copy")) * ROW :]
    what[:ROW] ^= 0xFF  # it was not there before
    before = what[:ROW].copy()
    looked = slice(ROW - 16, ROW) if kind == "across" else slice(16)
    one = {"row_bytes": ROW, "class_": class_, "count0": 1, "count1": 1, "count2": 1}
    bench.host.submit(class_, [one | {"source": source, "destination": destination}])
    edge = RisingEdge(bench.clk)
    for cycle in itertools.count():
        await edge
        if (what[:ROW] != before)[looked].any():
            return cycle
    raise AssertionError


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def both_lanes_tell_their_ends(dut: Any) -> None:
    """Short rows of two classes end in the same cycle, one in HBM and one in SBUF; both descriptors end."""
    bench = HbmBench(dut)
    await bench.start()
    for c, kind in ((0, "store"), (3, "load")):
        bench.host.submit(c, [long(bench, kind, c, 40) | {"row_bytes": 16}])
    await ClockCycles(bench.clk, 4000)
    ended = [bench.host.completed[c] for c in (0, 3)]
    await stop(bench)
    assert ended == [1, 1], f"descriptors of classes 0 and 3 that have ended: {ended}"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_class_passes_those_that_wait(dut: Any) -> None:
    """Class 0 fills the queue of one mover; class 1 goes to the partitions of another as fast as alone."""
    bench = HbmBench(dut)
    await bench.start()
    other = long(bench, "load", 1, 4) | {"destination_step0": 0}
    other["destination"] += (bench.cfg.partitions - 1) * PARTITION_STRIDE_BYTES
    times: list[int] = []
    for loaded in (False, True):
        if loaded:
            bench.host.submit(0, [long(bench, "load", 0, 1200) | {"destination_step0": 0}])  # all to partition 0
            await ClockCycles(bench.clk, 1500)
        before = bench.host.completed[1]
        bench.host.submit(1, [other])
        cycle = 0
        while bench.host.completed[1] == before and cycle < 20_000:
            await RisingEdge(bench.clk)
            cycle += 1
        times.append(cycle)
    dut._log.warning("class 1 alone %d cycles, beside class 0 %d", *times)
    COVERAGE.when(times[1] < 1.2 * times[0], "class passes a full one")
    assert times[1] < 1.2 * times[0], f"{times[1]} cycles beside class 0, {times[0]} alone"


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(kind=["load", "store", "copy", "across"], others=_OTHERS)
async def first_bytes_of_one_class(dut: Any, kind: str, others: str) -> None:
    """Cycles to the first byte of class 3, alone and at some times while the others load, store, or copy across
    groups, all they can: what docs/dma.md states. The class that goes first, class 0 by priority, has it at most half
    as late again."""
    bench = HbmBench(dut)
    await bench.start()
    dma = bench.cfg.dma
    one = 0 if dma.priority else 3
    alone = await first_byte(bench, one, kind)
    await bench.host.idle()
    for c in set(range(CLASSES)) - {one}:
        bench.host.submit(c, [long(bench, others, c, 1200)])
    await ClockCycles(bench.clk, 2000)
    loaded: list[int] = []
    for _ in range(12 if first_class(dma) is not None else 4):  # without, waits are long, and nothing is promised
        loaded.append(await first_byte(bench, one, kind))
        await ClockCycles(bench.clk, int(bench.rng.integers(100, 200)))
    said = f"first byte, {kind} of class {one}: {alone} cycles alone, {min(loaded)} to {max(loaded)}"
    dut._log.warning("%s beside others: %s", said, others)
    await stop(bench)
    assert alone <= min(loaded)
    if first_class(dma) is not None:
        COVERAGE.hit(f"first {kind} beside {others}s")
        assert max(loaded) <= 1.5 * alone, said


@cocotb.test()
async def covered(dut: Any) -> None:
    if first_class(HbmBench(dut).cfg.dma) is not None:  # without it three of these are left
        COVERAGE.require_all()
