"""What reports say of programs on GPSIMD cores: text, ends, cycles of each core; and that text is compared."""

import dataclasses
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.image import build_image
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import named
from rtl.contract.gpsimd import FAULT, Counter
from rtl.contract.isa import Cause
from rtl.contract.memmap import Space, address
from rtl.contract.timing import CONFLICT_PORTS, STALLS, Engine
from sim.page.data import page_data
from sim.report.programs import ended, lines_of
from sim.report.report_json import Subject, make_report
from sim.report.terminal import PRINTED_LINES, show
from sim.report.verdict import passed
from sim.run.checking import checked
from sim.run.compare import Comparison, Mismatch, compare_printed
from sim.run.kept_golden import golden_key, keep_golden
from sim.run.result import EngineCycles, Fault, GpsimdCore, RunResult
from sim.systems.core import run as core_run
from verif.checks.made_elf import LOCAL, code, elf, stack

CFG = named("small")
WAITS = STALLS[Engine.GPSIMD]
CORES = tuple(
    GpsimdCore(busy=300, idle=100, stall=dict.fromkeys(WAITS, 0) | {"branch": 50 * n, "load": 50}, instructions=300 + n)
    for n in range(4)
)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    path = tmp_path / "sift.elf"
    path.write_bytes(elf([stack(), code()], symbols=[("gp_body_sift", LOCAL + 4096, 4)]))
    workload = find_workload("gpsimd")
    return workload.build(CFG, workload.parse([f"elf={path}", "watchdog=1234"]))


def result(**changes: Any) -> RunResult:
    engines = {e.name.lower(): EngineCycles(busy=0, idle=1000, stall=dict.fromkeys(STALLS[e], 0)) for e in Engine}
    values: dict[str, Any] = {
        "device": "rtl", "end": "done", "message": "", "cycles": 1000, "engines": engines, "hbm_bytes_read": 1,
        "windows": {"tensor": (0, 0), "vector": (0, 0), "scalar": (0, 0)}, "hbm_bytes_written": 0,
        "conflicts": dict.fromkeys(CONFLICT_PORTS, 0), "faults": (), "outputs": {}, "wall_seconds": 0.01,
        "cpu_seconds": 0.01, "retired": np.zeros(0), "retired_total": 3,
    }  # fmt: skip
    return RunResult(**{**values, **changes})


def report(program: Program, run: RunResult, match: bool = True) -> dict[str, Any]:
    subject = Subject(workload="gpsimd", params={}, cfg=CFG, array="native", fast=False, seed=0, program=program)
    return make_report(subject, run, Comparison(match=match, elements=0), {})


def shown(values: dict[str, Any]) -> str:
    text = io.StringIO()
    show(values, Console(file=text, width=120))
    return text.getvalue()


def fault(cause: Cause, low: int = 0, core: int = 0, trap: int = 0, sequence: int = 1) -> Fault:
    where = address(Space.GPSIMD, FAULT.pack(low=low, cause=trap, core=core), core_id=5)
    return Fault(queue="gpsimd", sequence=sequence, cause=cause, address=where)


@pytest.mark.parametrize(
    ("met", "says"),
    [
        (fault(Cause.GP_EXIT, 7, 3), "core gp3 of sift.elf ended with exit value 7, not 0"),
        (fault(Cause.GP_EXIT, (1 << 32) - 2), "core gp0 of sift.elf ended with exit value -2, not 0"),
        (
            fault(Cause.GP_TRAP, LOCAL + 4098, 2, 2),
            "core gp2 of sift.elf trapped: illegal instruction (mcause 2) at pc 0x10001002 in sift",
        ),
        (fault(Cause.GP_TRAP, 16, 1, 30), "core gp1 of sift.elf trapped: trap (mcause 30) at pc 0x00000010"),
        (fault(Cause.GP_WATCHDOG, core=1), "core gp1 of sift.elf still ran after 1,234 GPSIMD cycles, the limit of"),
        (fault(Cause.GP_WATCHDOG, sequence=9), "core gp0 still ran after 4,194,304 GPSIMD cycles, the limit of its"),
        (
            fault(Cause.GP_DMA, LOCAL + 4098, 1, Cause.BAD_SEMAPHORE),
            "core gp1 of sift.elf pushed a copy that failed: its signal is no semaphore, at pc 0x10001002 in sift",
        ),
        (fault(Cause.GP_DMA, 16, 1, 31), "core gp1 of sift.elf pushed a copy that failed: cause 31, at pc 0x00000010"),
        (fault(Cause.GP_NO_IMAGE), ""),
        (fault(Cause.BAD_SPACE), ""),
    ],
)
def test_how_a_program_ended(program: Program, met: Fault, says: str) -> None:
    told = ended(met, program)
    assert told.startswith(says) and bool(told) == bool(says)
    values = report(program, result(end="fault", faults=(met,), printed={2: b"before\n"}), match=False)
    assert values["faults"][0]["told"] == told and not passed(values)
    text = " ".join(shown(values).split())
    assert (told or f"address {met.address:#x}") in text and "[gp2] before" in text
    assert (told or f"address {met.address:#x}") in page_data(values, None, "")["verdict"]


def test_text_and_cycles_of_cores_are_in_the_report(program: Program) -> None:
    run = result(printed={3: "größer\nto be\n".encode(), 0: b"\xff[bold]"}, gpsimd_cores=CORES)
    values = report(program, run)
    assert values["printed"] == {"gp0": "�[bold]", "gp3": "größer\nto be\n"}
    assert list(values["printed"]) == ["gp0", "gp3"]
    assert values["gpsimd_cores"][2] == {
        "busy": 300,
        "idle": 100,
        "stall": dict.fromkeys(WAITS, 0) | {"branch": 100, "load": 50},
        "instructions": 302,
    }
    lines = [line.split() for line in shown(values).splitlines()]
    assert ["[gp0]", "�[bold]"] in lines and ["[gp3]", "größer"] in lines and ["[gp3]", "to", "be"] in lines
    assert "GPSIMD cores, of their own cycles" in shown(values)
    row = next(line for line in lines if line[:1] == ["gp3"])
    assert (
        row[1:6] == ["303", "50.0", "%", "16.7", "%"]
        and " ".join(row[6:]).replace("\u00a0", " ") == "branch 25.0 % load 8.3 %"
    )
    page = page_data(values, None, "")["report"]
    assert page["printed"] == "[gp0] �[bold]\n[gp3] größer\n[gp3] to be" and len(page["gpsimd_cores"]) == 4


def test_a_run_without_programs_says_nothing_of_them(program: Program) -> None:
    values = report(program, result())
    assert values["printed"] == {} and values["gpsimd_cores"] == []
    assert "GPSIMD cores" not in shown(values) and "[gp" not in shown(values)


def test_much_text_and_signs_that_move_a_cursor(program: Program) -> None:
    assert lines_of({"gp1": "a\x1b[2Jb\r\n\tc\n\nd"}) == ["[gp1] a�[2Jb", "[gp1] \tc", "[gp1] ", "[gp1] d"]
    values = report(program, result(printed={0: b"line\n" * 100}))
    text = shown(values)
    assert text.count("[gp0] line") == PRINTED_LINES and "and 60 lines more in report.json" in text


def test_states_of_a_core_are_those_of_the_engine() -> None:
    assert [c.name.lower() for c in Counter if Counter.SLEEP <= c <= Counter.FAULT] == list(WAITS)


@pytest.mark.parametrize(
    ("got", "expected", "first"),
    [
        ({}, {}, None),
        ({1: b"abc"}, {1: b"abc"}, None),
        ({1: b"abc"}, {1: b"abd"}, ("text of gp1", 2, 0x63, 0x64, 1)),
        ({1: b"ab"}, {1: b"abcd"}, ("text of gp1", 2, 0, 0x63, 2)),
        ({3: b"\0"}, {}, ("text of gp3", 0, 0, 0, 1)),
        ({2: b"x", 0: b"y"}, {2: b"y", 0: b"y"}, ("text of gp2", 0, 0x78, 0x79, 1)),
    ],
)
def test_text_is_compared(got: dict[int, bytes], expected: dict[int, bytes], first: Any) -> None:
    found = compare_printed(got, expected)
    assert (found and (found.tensor, found.index[0], found.got, found.expected, found.count)) == first
    assert found is None or isinstance(found, Mismatch)


def test_text_counts_in_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside bits that are kept, for a golden machine need not know of programs."""
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path))
    workload = find_workload("dma")
    image = build_image(workload.build(CFG, workload.complete({"rows": 2}), 0))
    outputs = {name: np.zeros(r.shape, r.dtype) for name, r in image.outputs.items()}
    keep_golden(golden_key(CFG, image), outputs, {1: b"right"})
    right = result(outputs=outputs, printed={1: b"right"})
    assert checked(CFG, image, right).match and checked(CFG, image, right).kept
    wrong = dataclasses.replace(right, printed={1: b"wrong"})
    found = checked(CFG, image, wrong)
    assert not found.match and found.first is not None


def test_arrays_are_written_if_the_run_ended_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image, given, out = tmp_path / "a.elf", tmp_path / "in.npz", tmp_path / "out.npz"
    image.write_bytes(elf([stack(), code()]))
    np.savez(given, dst=np.zeros((2, 3), np.float16))
    bits = np.arange(6, dtype=np.uint16).reshape(2, 3)
    ends = iter([result(end="fault", faults=(fault(Cause.GP_EXIT, 1),)), result(end="stuck"), result()])
    monkeypatch.setattr(core_run, "_simulate", lambda *_: dataclasses.replace(next(ends), outputs={"dst": bits}))
    params = find_workload("gpsimd").parse([f"elf={image}", f"in={given}", f"out={out}"])
    run = core_run.Run(workload="gpsimd", params=params, cfg=CFG, check="none", out=tmp_path / "report")
    for _ in range(2):
        assert not passed(core_run.run_workload(run, Console(file=io.StringIO()))) and not out.exists()
    assert passed(core_run.run_workload(run, Console(file=io.StringIO())))
    with np.load(out) as found:
        assert found.files == ["dst"] and found["dst"].dtype == np.float16
        assert found["dst"].tobytes() == bits.tobytes()
