"""Descriptors whose rows indices choose: gather, scatter, sums at indices, indices that are none of the table."""

from itertools import product
from typing import Any

import cocotb

from rtl.contract.config import load
from rtl.contract.descriptor import DmaAdd, Indirect
from rtl.contract.isa import Cause
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from verif.agents.stall import STYLES
from verif.bench import Run, noticed_by
from verif.benches.dma.descriptors import KINDS, WINDOWS, random_descriptor, window
from verif.benches.dma.dma_driver import DmaBench, same
from verif.benches.dma.indirect import Chosen, indirect_descriptor, store
from verif.checks.coverage import Coverage
from verif.golden.dma import bad_index, check, copy

_FAULTS = (
    *noticed_by(
        "moves_the_rows_that_indices_choose",
        "an index is skipped: the one behind it counts twice",
        "indices down the partitions are those of the first",
        "the index behind the last row of a table is one of it",
    ),
    *noticed_by("tells_the_first_bad_index", "a bad index is not seen"),
    *noticed_by("refuses_what_makes_no_sense", "indices may lie behind their partition"),
)
RUNS = (
    Run("dma", faults=_FAULTS),
    Run("dma", options={"link": True}, seeds=(1,)),
    Run("dma", config=load("tiny", ["dma.rings=4", "dma.strict_class=1"]), seeds=(2,), regress=True),  # with a lane
)

_ROWS_MAX = 16  # of what is not refused, and so runs
TABLES = (Indirect.SOURCE, Indirect.DESTINATION)
COVERAGE = Coverage(
    "dma gather",
    [
        *(f"{kind}, {table.name}" for kind, table in product(KINDS, TABLES)),
        *(f"adds {add.name}, {table.name}" for add, table in product(list(DmaAdd)[1:], TABLES)),
        *(f"{way}, {what}" for way in ("down", "along") for what in ("one", "several", "two dimensions")),
        *(f"first index in word {n} of its unit" for n in range(4)),
        *(f"{which} left out" for which in ("first", "last", "all", "none")),
        "a row of the destination twice",
        "two classes with indices at once",
    ],
)


def _cover(chosen: Chosen) -> None:
    d, beyond = chosen.descriptor, chosen.beyond
    kind = " to ".join("hbm" if d[side] >> 40 == Space.HBM else "sbuf" for side in ("source", "destination"))
    table = Indirect(d["indirect"])
    COVERAGE.hit(f"{kind}, {table.name}")
    COVERAGE.when(d["add"], f"adds {DmaAdd(d['add']).name}, {table.name}")
    way = "down" if d["index_down"] else "along"
    COVERAGE.hit(f"{way}, {'two dimensions' if d['count1'] > 1 else 'several' if d['count0'] > 1 else 'one'}")
    COVERAGE.hit(f"first index in word {d['index'] & 3} of its unit")
    for which, found in (("first", beyond[0]), ("last", beyond[-1]), ("all", beyond.all()), ("none", not beyond.any())):
        COVERAGE.when(found, f"{which} left out")
    again = table == Indirect.DESTINATION and len(set(chosen.indices.tolist())) < len(chosen.indices)
    COVERAGE.when(again and d["count1"] == 1, "a row of the destination twice")


def _any(bench: DmaBench, number: int, *, beyond: float) -> Chosen:
    """One of any kind, with its indices in SBUF."""
    rng = bench.rng
    kind, table = str(rng.choice(KINDS)), Indirect(int(rng.integers(1, 3)))
    add = int(rng.integers(1, 4)) if kind.endswith("sbuf") and rng.random() < 0.5 else 0
    chosen = indirect_descriptor(rng, bench.cfg, kind, number, table, beyond=beyond, add=add)
    store(bench.sbuf, chosen)
    return chosen


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def moves_the_rows_that_indices_choose(dut: Any) -> None:
    """Random descriptors with indices, beside others without, each with other stalls everywhere. Bytes are counted."""
    bench = DmaBench(dut)
    await bench.start()
    for round_ in range(40):
        bench.style = str(bench.rng.choice(STYLES)) if round_ % 3 else None
        batch: list[tuple[int, dict[str, int]]] = []
        moved = {"source": 0, "destination": 0}
        some = []
        for number in range(int(bench.rng.integers(1, WINDOWS + 1))):
            if bench.rng.random() < 0.8:
                share = float(bench.rng.choice([0.0, 0.3, 0.9]))
                chosen = _any(bench, number, beyond=share)
                chosen.descriptor["index_skips"] |= int(chosen.beyond.any())
                _cover(chosen)
                d, rows = chosen.descriptor, int((~chosen.beyond).sum())
                some.append(d["class_"])
            else:
                d = random_descriptor(bench.rng, bench.cfg, str(bench.rng.choice(KINDS)), number)
                rows = d["count0"] * d["count1"] * d["count2"]
            batch.append((int(bench.rng.integers(len(bench.host.rings))), d))
            for side in moved:
                moved[side] += rows * d["row_bytes"] * (d[side] >> 40 == Space.HBM)
        COVERAGE.when(len(set(some)) > 1, "two classes with indices at once")
        before = bench.host.read_bytes, bench.host.written_bytes
        await bench.run(batch)
        counted = bench.host.read_bytes - before[0], bench.host.written_bytes - before[1]
        assert counted == (moved["source"], moved["destination"]), "bytes of HBM are those of the rows that moved"
    COVERAGE.require_all()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def tells_the_first_bad_index(dut: Any) -> None:
    """All other rows are moved, what was before it is done, what is behind it has no signal; other rings go on."""
    bench = DmaBench(dut)
    await bench.start()
    told = 0
    for _ in range(24):
        rings = len(bench.host.rings)
        ring = int(bench.rng.integers(rings))
        other = (ring + 1) % rings
        chosen = _any(bench, 1, beyond=0.4)
        chosen.descriptor["index_skips"] = 0
        at = bad_index(chosen.descriptor, bench.sbuf)
        if at is None:
            continue
        told += 1
        before = random_descriptor(bench.rng, bench.cfg, str(bench.rng.choice(KINDS)), 2)
        after = random_descriptor(bench.rng, bench.cfg, "hbm to hbm", 4)
        beside = _any(bench, 5, beyond=0.0).descriptor
        bench.expect(ring, 2, before)
        bench.expect(other, 5, beside)
        hbm, sbuf = bench.hbm.copy(), bench.sbuf.copy()
        bench.host.submit(ring, [before, chosen.descriptor, after])
        bench.host.submit(other, [beside])
        await bench.host.idle()
        assert bench.host.fault(other)[0] == Cause.NONE
        assert bench.host.fault(ring) == (Cause.BAD_INDEX, 1, at), f"{bench.host.fault(ring)} instead of {at:#x}"
        assert not any(bench.pending), "what came before the fault, or in another ring, must complete"
        assert not bench.host.signals
        for d in (before, chosen.descriptor, beside):
            copy(d, hbm, sbuf)
        behind = window(bench.cfg, 4)  # may have moved
        hbm[behind.hbm.start : behind.hbm.stop] = bench.hbm[behind.hbm.start : behind.hbm.stop]
        same(bench.hbm, hbm, "HBM after a bad index")
        same(bench.sbuf, sbuf, "SBUF after a bad index")
        await bench.host.restart()
    assert told > 8


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refuses_what_makes_no_sense(dut: Any) -> None:
    """Each field alone, by the golden rule, and where the last index just has no place any more."""
    bench = DmaBench(dut, stalls="never")
    await bench.start()
    cfg = bench.cfg
    words, last = cfg.sbuf.partition_bytes // 4, cfg.partitions - 1
    far = address(Space.SBUF, last * PARTITION_STRIDE_BYTES + 8 * 512)  # from the indices
    whole = {f"{side}_step{n}": 0 for side in ("source", "destination") for n in range(3)}
    good = whole | {
        "source": address(Space.HBM, 256), "destination": far, "row_bytes": 16,
        "count0": 3, "count1": 2, "count2": 1, "source_step0": 16, "indirect": Indirect.SOURCE, "table_rows": 5,
    }  # fmt: skip
    plain = whole | {name: good[name] for name in ("source", "destination", "row_bytes")} | dict.fromkeys(
        ("count0", "count1", "count2"), 1
    )  # fmt: skip
    capacity = cfg.hbm.capacity_mib << 20
    down = {"index_down": 1}
    changes: list[dict[str, int]] = [
        *({"indirect": 3} | more for more in ({}, down)),
        {"table_rows": 0}, {"count2": 2}, {"count2": 0}, {"count0": 0},
        *({"index": words - n} for n in range(1, 8)),
        *({"index": words - 6, "count0": 1 << n} for n in range(3, 32)),
        *({"index": words - 6, "count1": 1 << n} for n in range(2, 32)),
        *({"index": words - n} | down for n in range(1, 5)),
        *({"index": n << 16} | down for n in range(last - 4, 128)),
        *({"count0": 1 << n, "destination_step0": 0} | down for n in range(32)),
        *({"count1": 1 << n, "destination_step1": 0} | down for n in range(32)),
        *({"index": 1 << n} for n in range(23)),
        *({"source": address(Space.HBM, capacity - n)} for n in (64, 79, 80, 81, 96)),
        *({"table_rows": 1 << n, "source_step0": 1 << 20} for n in range(28)),
        {"indirect": Indirect.DESTINATION, "destination_step0": PARTITION_STRIDE_BYTES, "table_rows": last + 2},
        {"source": address(Space.HBM, 256, core_id=3)}, {"destination": address(Space.SBUF, 256, core_id=3)},
    ]  # fmt: skip
    refused = 0
    wrong = [({}, plain | {name: 1}) for name in ("index_skips", "index_down", "index", "table_rows")]
    for change, d in wrong + [(change, good | change) for change in changes]:
        cause, at = check(d, cfg, link=bench.link)
        if cause == Cause.NONE:
            if d["count0"] * d["count1"] > _ROWS_MAX:
                continue
            store(bench.sbuf, Chosen(d, bench.rng.integers(0, d["table_rows"], d["count0"] * d["count1"]).astype("u4")))
            bench.host.on_completed = lambda ring: None
        refused += cause != Cause.NONE
        bench.host.submit(0, [d])
        await bench.host.idle()
        assert bench.host.fault(0) == (cause, int(not cause), at), (
            f"{bench.host.fault(0)}, not {cause.name} {at:#x}, for {change} {d}"
        )
        await bench.host.restart()
    assert refused > 100
