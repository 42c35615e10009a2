"""A DMA of two classes, without adders and indices: it copies as one of four with them, and refuses what it has not."""

from typing import Any

import cocotb

from rtl.contract.config import load
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Cause
from verif.bench import Fault, Run
from verif.benches.dma.descriptors import KINDS, WINDOWS, random_descriptor
from verif.benches.dma.dma_driver import DmaBench
from verif.checks.coverage import Coverage

RUNS = (
    Run(
        "dma",
        config=load("tiny", ["dma.classes=2", "sbuf.adders=false", "dma.indirect=false", "dma.weights=1:3:1:1"]),
        faults=(
            Fault("a class that a DMA has not is served", hangs=True),
            "a sum without adders is a copy",
            "a DMA without indices takes rows in order",
        ),
        seeds=(1, 2),
    ),
)

COVERAGE = Coverage(
    "dma of fewer", [*(f"class {c}" for c in range(8)), *(f"add {add.name}" for add in DmaAdd), "indices"]
)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def copies_what_the_golden_model_copies(dut: Any) -> None:
    bench = DmaBench(dut)
    await bench.start()
    for _ in range(12):
        batch: list[tuple[int, dict[str, int]]] = []
        for number in range(WINDOWS):
            ring = int(bench.rng.integers(len(bench.host.rings)))
            d = random_descriptor(bench.rng, bench.cfg, str(bench.rng.choice(KINDS)), number)
            COVERAGE.hit(f"class {d['class_']}")
            batch.append((ring, d))
        await bench.run(batch)


@cocotb.test(timeout_time=100, timeout_unit="us")  # 12 are enough; a fault hangs it
async def refuses_what_is_not_there(dut: Any) -> None:
    bench = DmaBench(dut)
    await bench.start()
    wrong = [{"class_": c} for c in range(2, 8)] + [{"add": int(add)} for add in DmaAdd if add != DmaAdd.COPY]
    wrong += [{"indirect": side, "table_rows": rows} for side in (1, 2) for rows in (0, 1)]
    for n, change in enumerate(2 * wrong):
        whole = {"source": 64, "row_bytes": 64, "count0": 1, "count1": 1, "count2": 1}  # so that only that is wrong
        good = random_descriptor(bench.rng, bench.cfg, "hbm to sbuf", 0) | whole
        good["destination"] &= ~63
        good |= {name: 0 for name in good if "_step" in name}
        ring = n % len(bench.host.rings)
        bench.host.submit(ring, [good | change])
        await bench.host.idle()
        assert bench.host.fault(ring) == (Cause.BAD_DESCRIPTOR, 0, 0), f"{bench.host.fault(ring)} for {change}"
        await bench.host.restart()
        COVERAGE.when("indirect" in change, "indices")
        COVERAGE.when("class_" in change, f"class {change.get('class_')}")
        COVERAGE.when("add" in change, f"add {DmaAdd(change.get('add', 0)).name}")
    COVERAGE.hit("add COPY")


@cocotb.test()
async def covered(dut: Any) -> None:
    COVERAGE.require_all()
