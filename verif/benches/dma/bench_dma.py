"""The DMA against its golden model, with an HBM that others wrote (cocotbext-axi) and a random SBUF."""

from itertools import cycle
from typing import Any

import cocotb

from rtl.contract.config import load
from rtl.contract.descriptor import DESCRIPTOR, DmaAdd
from rtl.contract.isa import Cause
from rtl.contract.memmap import Space, address
from verif.agents.stall import STYLES
from verif.bench import Run, noticed_by
from verif.benches.dma.bad_descriptors import bad_descriptor, misaligned_sums
from verif.benches.dma.descriptors import (
    KINDS,
    WINDOWS,
    adding_descriptor,
    directed,
    long_rows,
    power_row,
    random_descriptor,
)
from verif.benches.dma.dma_driver import COVERAGE, DmaBench, same
from verif.golden.dma import check, copy

_FAULTS = (
    *noticed_by(
        "copies_every_alignment_and_length",
        "the last unit of a row is written whole",
        "the window forgets the unit before",
        "a row is done when its last burst is sent",
        "strobes of the beat before stay",
        "a later piece of a row goes to where the row begins",
        "a descriptor may end while its last row is under way",
    ),
    *noticed_by(
        "copies_what_the_golden_model_copies",
        "the end of a ring's descriptors is not told",
        "bursts start anywhere and are full length: they cross 4 KiB",
        "a step of 0 does not broadcast",
        "a row is done before its last sum is in SBUF",
        "the outermost dimension of a descriptor is left out",
    ),
    *noticed_by(
        "refuses_each_misaligned_bit_of_a_sum",
        "the alignment of a sum is not checked",
        "the steps of a sum may be misaligned",
    ),
    *noticed_by(
        "refuses_what_the_golden_model_refuses",
        "the last row may leave its memory by its own length",
        "the signal's address is not checked",
        "rings of a DMA do not halt",
    ),
)

RUNS = (
    Run("dma", faults=_FAULTS),
    Run("dma", options={"link": True}, seeds=(1,)),  # the same inside
    *(Run("dma", config=load("tiny", [f"dma.ring_depth={n}"]), seeds=(2,), regress=True) for n in (2, 64)),
    Run("dma", config=load("tiny", ["dma.rings=4", "dma.strict_class=1"]), seeds=(2,), regress=True),  # with a lane
)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def copies_every_alignment_and_length(dut: Any) -> None:
    """All corner alignments and short lengths of the four directions."""
    bench = DmaBench(dut)
    await bench.start()
    batch: list[tuple[int, dict[str, int]]] = []
    for number, (_, d) in enumerate(directed(bench.cfg)):
        batch.append((number % len(bench.host.rings), d))
        if len(batch) == WINDOWS:
            await bench.run(batch)
            batch = []
    await bench.run([(n // 5, long_rows(bench.cfg, n)) for n in range(6)])
    for power in range(2, 13):
        await bench.run(
            [(0, power_row(bench.cfg, number, power)) for number in range(min(bench.cfg.dma.engines, WINDOWS))]
        )


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def copies_what_the_golden_model_copies(dut: Any) -> None:
    """Random descriptors on random rings, each with other stalls everywhere."""
    bench = DmaBench(dut)
    await bench.start()
    formats = {kind: cycle(add for add in DmaAdd if add) for kind in KINDS}
    for round_ in range(24):
        bench.style = str(bench.rng.choice(STYLES)) if round_ % 3 else None
        count = int(bench.rng.integers(1, WINDOWS + 1))
        one_ring = bench.rng.random() < 0.3
        batch = []
        for number in range(count):
            kind = str(bench.rng.choice(KINDS))
            longest = 2000 if bench.rng.random() < 0.3 else 300
            ring = 0 if one_ring else int(bench.rng.integers(len(bench.host.rings)))
            if kind.endswith("sbuf") and bench.rng.random() < 0.4:
                batch.append((ring, adding_descriptor(bench.rng, bench.cfg, kind, number, next(formats[kind]))))
            else:
                batch.append((ring, random_descriptor(bench.rng, bench.cfg, kind, number, longest=longest)))
        await bench.run(batch)
    COVERAGE.require_all()


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def adds_in_the_order_of_a_ring(dut: Any) -> None:
    """A copy and sums of one ring to the same bytes, one behind the other, without a wait between: floats, whose sums
    depend on their order."""
    bench = DmaBench(dut)
    await bench.start()
    bench.host.on_completed = lambda ring: bench.host.signals.clear()
    for round_ in range(8):
        bench.style = "never" if round_ % 2 else None
        first = adding_descriptor(bench.rng, bench.cfg, "hbm to sbuf", 0, DmaAdd.FP32, size=4)
        many = [first | {"add": 0}]
        for _ in range(int(bench.rng.integers(3, 9))):
            source = int(bench.rng.integers(0, 1 << 12)) & ~3
            add = int(bench.rng.choice([DmaAdd.FP32, DmaAdd.FP32, DmaAdd.BF16, DmaAdd.INT32]))
            many.append(first | {"add": add, "source": address(Space.HBM, 1 << 15 | source)})
        many = [d for d in many if check(d, bench.cfg)[0] == Cause.NONE]
        sbuf = bench.sbuf.copy()
        for d in many:
            copy(d, bench.hbm, sbuf)
        bench.host.submit(int(bench.rng.integers(len(bench.host.rings))), many)
        await bench.host.idle()
        same(bench.sbuf, sbuf, "SBUF after sums")
    assert bench.ports.sums > 100


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def refuses_what_the_golden_model_refuses(dut: Any) -> None:
    """A bad descriptor halts its ring, with a record; what came before is done, what follows is not."""
    bench = DmaBench(dut)
    await bench.start()
    seen: set[int] = set()
    for number in range(44):
        rings = len(bench.host.rings)
        ring = int(bench.rng.integers(rings))
        other = (ring + 1) % rings
        bad = bad_descriptor(bench.rng, bench.cfg, number, link=bench.link)
        cause, at = check(bad, bench.cfg, link=bench.link)
        seen.add(cause)
        good = int(bench.rng.integers(0, 3))
        kinds = [str(bench.rng.choice(KINDS)) for _ in range(good)]
        before = [random_descriptor(bench.rng, bench.cfg, kind, n) for n, kind in enumerate(kinds)]
        after = random_descriptor(bench.rng, bench.cfg, "hbm to hbm", 4)
        beside = random_descriptor(bench.rng, bench.cfg, "hbm to sbuf", 5)
        for n, d in enumerate(before):
            bench.expect(ring, n, d)
        bench.expect(other, 5, beside)
        hbm, sbuf = bench.hbm.copy(), bench.sbuf.copy()
        bench.host.submit(ring, [*before, bad, after])
        bench.host.submit(other, [beside])
        await bench.host.idle()
        assert bench.host.fault(other)[0] == Cause.NONE, f"{bench.host.fault(other)} beside {bad}"
        record = bench.host.fault(ring)
        assert record == (cause, good, at), f"{record} for {Cause(cause).name} {bad}"
        assert not any(bench.pending), "what came before the fault, or in another ring, must complete"
        assert not bench.host.signals
        for d in (*before, beside):
            copy(d, hbm, sbuf)
        same(bench.hbm, hbm, "HBM after a fault")
        same(bench.sbuf, sbuf, "SBUF after a fault")
        await bench.host.restart()
        assert bench.host.fault(ring)[0] == Cause.NONE
    if not bench.plant:
        assert len(seen) >= 5, f"five causes at least of a refusal must be seen, not only {seen}"


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def refuses_each_misaligned_bit_of_a_sum(dut: Any) -> None:
    """Alone, in each format."""
    bench = DmaBench(dut, stalls="never")
    await bench.start()
    for what, bad in misaligned_sums(bench.cfg):
        cause, at = check(bad, bench.cfg, link=bench.link)
        bench.host.submit(0, [bad])
        await bench.host.idle()
        assert bench.host.fault(0) == (cause, 0, at), f"{what}: {bench.host.fault(0)}"
        await bench.host.restart()


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def refuses_each_bit_of_an_address_behind_hbm(dut: Any) -> None:
    """Of either side, alone."""
    bench = DmaBench(dut, stalls="never")
    await bench.start()
    good = random_descriptor(bench.rng, bench.cfg, "hbm to hbm", 1)
    for bit in range((bench.cfg.hbm.capacity_mib << 20).bit_length() - 1, 40):
        for side in ("source", "destination"):
            bad = {**good, side: address(Space.HBM, 1 << bit)}
            cause, at = check(bad, bench.cfg, link=bench.link)
            assert cause == Cause.OUT_OF_RANGE, (bit, side)
            bench.host.submit(0, [bad])
            await bench.host.idle()
            assert bench.host.fault(0) == (cause, 0, at), f"{side} at bit {bit}: {bench.host.fault(0)}"
            await bench.host.restart()


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def refuses_each_bit_of_a_reach_behind_hbm(dut: Any) -> None:
    """Rows of either side that lie two steps of two dimensions apart, up and down, each a power of two."""
    bench = DmaBench(dut, stalls="never")
    await bench.start()
    good = random_descriptor(bench.rng, bench.cfg, "hbm to hbm", 1)
    good |= {f"{side}_step{n}": 0 for side in ("source", "destination") for n in range(3)}
    bits = range((bench.cfg.hbm.capacity_mib << 20).bit_length() - 1, 38)
    for bit in bits:
        for side in ("source", "destination"):
            for other in bench.rng.choice(bits, 3, replace=False):
                dimensions, sign = bench.rng.permutation(3), int(bench.rng.choice((-1, 1)))
                bad = good | {f"count{n}": 2 if n in dimensions[:2] else 1 for n in range(3)}
                bad |= {f"{side}_step{n}": sign << int(b) for n, b in zip(dimensions, (bit, other), strict=False)}
                cause, at = check(bad, bench.cfg, link=bench.link)
                assert cause == Cause.OUT_OF_RANGE, bad
                bench.host.submit(0, [bad])
                await bench.host.idle()
                assert bench.host.fault(0) == (cause, 0, at), f"{bench.host.fault(0)} for {bad}"
                await bench.host.restart()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def takes_only_what_was_released(dut: Any) -> None:
    """Descriptors that are there wait for their release, and releases for their descriptors."""
    bench = DmaBench(dut, stalls="never")
    await bench.start()
    some = [random_descriptor(bench.rng, bench.cfg, "hbm to sbuf", n) for n in range(4)]
    for number, d in enumerate(some):
        bench.expect(0, number, d)
    ring = bench.host.rings[0]
    ring.send(DESCRIPTOR.pack(d) for d in some[:3])
    await bench.cycles(100)
    assert bench.host.completed[0] == 0
    assert bench.dut.active.value == 0
    bench.host.release(0, 1)
    await bench.host.idle()
    assert bench.host.completed[0] == 1
    bench.host.release(0, 3)
    await bench.cycles(600)
    assert bench.host.completed[0] == 3
    assert bench.dut.ring_status__0__busy.value == 1
    ring.send([DESCRIPTOR.pack(some[3])])
    await bench.host.idle()
    assert bench.host.completed[0] == 4
