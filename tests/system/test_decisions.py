"""Runs that decide, on the RTL: bits of random kernels, `decode`, traces, figures, sentences of what goes wrong."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.decisions.executed import executed_program
from firmware.image import Image, build_image
from firmware.kernel import Kernel
from firmware.program import Place, Program
from firmware.workloads import find_workload
from rtl.base.trace import RINGS_MAX
from rtl.contract.config import named
from rtl.contract.isa import COPY_QUEUES, Cause, Opcode, Queue
from rtl.contract.memmap import Space
from sim.page.browser import Browser
from sim.page.write import write_page
from sim.run.result import RunResult
from sim.systems.core.run import Run, run_workload
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.trace.recorded import NEVER, load_trace
from sim.trace.rings import OWN_RINGS, own_ring, ring_name
from verif.checks.deciding_kernels import PAGES, counted, paged, sum_of_blocks, where_pages_go
from verif.checks.random_decisions import MOST, REGISTERS, deciding_kernel
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY = named("tiny")
P = TINY.partitions


def run(image: Image) -> RunResult:
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        return device.run()


def report_of(out: Path, *settings: str, check: str = "golden") -> dict[str, Any]:
    workload = find_workload("decode")
    params = workload.parse(["head=16", "past=128", *settings])
    return run_workload(Run(workload="decode", params=params, cfg=TINY, out=out, check=check), Console(quiet=True))


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.regress) for n in range(40, 1000, 40))])
def test_random_kernels_do_what_their_numbers_say(first: int) -> None:
    """40 kernels of blocks and loops that three numbers decide: the bits of the kernel that knows the numbers, and as
    many instructions and copies as it would have executed."""
    skipped = copies = before = 0
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        for seed in range(first, first + 40):
            values = np.random.default_rng(seed).integers(MOST + 1, size=REGISTERS).tolist()
            golden = GoldenMachine(TINY)
            golden.load(build_image(deciding_kernel(TINY, seed, values, known=True)))
            want = golden.run()
            program = deciding_kernel(TINY, seed, values, known=False)
            device.load(build_image(program))
            got = device.run()
            assert (got.end, got.faults, want.faults) == ("done", (), [])
            assert got.registers == dict(enumerate(values))
            for name, bits in want.outputs.items():
                assert np.array_equal(got.outputs[name], bits), f"kernel {seed} of {values}: {name}"
            plain = executed_program(program, got.registers)
            executed = sum(map(len, plain.queues.values()))
            assert got.retired_total - before == executed, f"kernel {seed} of {values}"
            before = got.retired_total
            skipped += sum(map(len, program.queues.values())) > executed
            copies += sum(i.descriptor is not None for i in plain.queues[Queue.SCALAR])
    assert skipped > 10 and copies > 40


@pytest.mark.parametrize(("live", "turns"), [(0, 0), (1, 1), (32, 1), (33, 2), (100, 4), (128, 4)])
def test_decode_reads_how_much_is_live(tmp_path: Path, live: int, turns: int) -> None:
    """As many turns as blocks with live tokens, and the bits of the kernel that knows how many."""
    dynamic = report_of(tmp_path / "dynamic", f"live={live}", "heads=4", "kv_heads=2")
    static = report_of(tmp_path / "static", f"live={live}", "heads=4", "kv_heads=2", "dynamic=false")
    for report in (dynamic, static):
        assert report["match"] is True and report["end"] == "done"
        assert report["macs"] == 2 * 4 * 16 * live
        assert report["metrics"]["cosine"] > 0.9999
    assert dynamic["metrics"] == static["metrics"]
    beats = dynamic["engines"]["tensor"]["busy"]
    assert beats == static["engines"]["tensor"]["busy"] and (beats > 0) == (live > 0)
    recorded = load_trace(tmp_path / "dynamic")
    own = recorded.copy_ring >= OWN_RINGS
    keys = 2  # chunks of a head of 16 on 8 partitions
    assert np.count_nonzero(own) == 2 * turns * (keys + 1)
    assert set(recorded.copy_ring[own].tolist()) <= {own_ring(Queue.SYNC)}
    assert np.all(recorded.copy_begin != NEVER) and np.all(recorded.copy_end > recorded.copy_begin)
    items = Counter(recorded.item_opcode.tolist())
    assert items[Opcode.DMA_COPY] == 2 * turns * (keys + 1) and items[Opcode.RANGE_SELECT] == 2 * turns
    assert np.all(recorded.item_retire != NEVER)
    turned = {recorded.text(n) for n in recorded.item_turn_text[recorded.item_opcode == Opcode.RANGE_SELECT]}
    assert turned == {str(n) for n in range(turns)}


def test_a_page_shows_copies_of_queues(tmp_path: Path, browser: Browser) -> None:
    report_of(tmp_path, "live=40")
    browser.heard.clear()
    browser.open(write_page(tmp_path), width=1280, dark=False)
    names = browser.run("timeline.lanes.map(l => l.name)")
    assert "sync copies" in names and not browser.heard


def test_rings_have_the_same_numbers_everywhere() -> None:
    assert OWN_RINGS == RINGS_MAX
    assert [own_ring(queue) for queue in COPY_QUEUES] == [OWN_RINGS, OWN_RINGS + 1]
    assert [ring_name(n) for n in (0, 15, 16, 17)] == ["ring 0", "ring 15", "scalar copies", "sync copies"]


def test_too_much_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number beyond its maximum: the queues that need it halt, the report tells which and where it is read."""
    workload = find_workload("decode")
    build = type(workload).build

    def more(self: Any, cfg: Any, params: Any, seed: int, maker: Any = None) -> Program:
        program = build(self, cfg, params, seed, maker)
        program.tensors["live"] = replace(program.tensors["live"], data=np.array([129], np.uint32))
        return program

    monkeypatch.setattr(type(workload), "build", more)
    report = report_of(tmp_path, "live=100", check="none")
    assert report["end"] == "fault"
    assert {fault["cause"] for fault in report["faults"]} == {"bad_size"}
    for fault in report["faults"]:
        assert fault["told"].startswith("live is 129, and the kernel has room for 0 to 128 (k.register at ")
        assert fault["source"].startswith("firmware/kernels/decode.py:")


@pytest.mark.parametrize("ones", range(6))
def test_a_number_may_be_what_the_run_has_worked_out(ones: int) -> None:
    """Each queue that needs it waits for the copy that stores it. Of five there is none to add."""
    image = build_image(counted([1] * ones + [0] * (8 - ones)))
    got = run(image)
    assert got.registers == {0: ones}
    if ones > 4:
        assert {(fault.queue, fault.cause) for fault in got.faults} == {
            ("vector", Cause.BAD_SIZE), ("sync", Cause.BAD_SIZE),
        }  # fmt: skip
        return
    assert np.array_equal(got.outputs["y"].view(np.float32), sum_of_blocks(ones))
    for order in (None, 1, 2, 3):
        golden = GoldenMachine(TINY, order)
        golden.load(image)
        assert np.array_equal(golden.run().outputs["y"], got.outputs["y"])


def test_pages_are_where_a_table_says() -> None:
    """Random tables and lengths, pages that come twice among them."""
    rng = np.random.default_rng(1)
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        for live in (0, 1, 2, 3, 4, 4, 4, 4):
            table = rng.integers(PAGES, size=4).tolist()
            device.load(build_image(paged(table, live)))
            got = device.run()
            assert (got.end, got.registers) == ("done", dict(enumerate([*table, live])))
            for name, want in zip("yz", where_pages_go(table, live), strict=True):
                assert np.array_equal(got.outputs[name], want), (table, live, name)


@pytest.mark.parametrize("queue", COPY_QUEUES, ids=lambda q: q.name.lower())
def test_a_direct_copy_that_fails_names_its_instruction(queue: Queue) -> None:
    """Behind some that complete; the golden machine says the same."""
    k = Kernel(TINY, "copies")
    x = k.hbm("x", (P, 16), "bf16", np.zeros((P, 16), np.uint16))
    tile = k.sbuf("tile", partitions=P, columns=64, dtype="bf16")
    for n in range(4):
        k.vector.memset(tile[:, :16], float(n))
        k.dma(tile[:, :16], x, direct=True, queue=queue)
    program = k.program()
    place = next(n for n, i in enumerate(program.queues[queue]) if i.descriptor and n > 2)
    instruction = program.queues[queue][place]
    assert instruction.descriptor is not None
    wrong = replace(instruction.descriptor, destination=Place(Space.PSUM, 64))
    program.queues[queue][place] = replace(instruction, descriptor=wrong)
    image = build_image(program)
    got = run(image)
    (fault,) = got.faults
    assert (fault.queue, fault.cause, fault.sequence) == (f"{queue.name.lower()} copies", Cause.BAD_SPACE, place)
    golden = GoldenMachine(TINY)
    golden.load(image)
    (told,) = golden.run().faults
    assert (told.queue, told.cause, told.sequence, told.address) == (
        fault.queue, fault.cause, fault.sequence, fault.address,
    )  # fmt: skip
