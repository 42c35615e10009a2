"""`plexus run gpsimd` on the RTL: arrays, printed text, counters, and a sentence for each way to end badly."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.gpsimd.build import build
from firmware.gpsimd.options import Options
from rtl.contract.config import named
from rtl.contract.gpsimd import Mailbox, Region, cores, lane_address, lanes, row_address
from rtl.contract.isa import INSTRUCTION
from sim.cli import main
from sim.toolchain import ROOT
from verif.checks.made_elf import CODE, LOCAL, PROGBITS, code, elf
from verif.checks.riscv_words import immediate, jump, load_constant, register, store

pytestmark = pytest.mark.sim
TINY = named("tiny")
WIDTH = lanes(TINY.partitions)
TOO, BOX = int(Region.LOCAL_TOO), int(Region.MAILBOX)
TOHOST = TOO + 0x800
HELLO = ROOT / "firmware" / "gpsimd" / "apps" / "hello.cpp"
no_compiler = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang: make firmware-tools")


def run(tmp_path: Path, image: bytes | Path, *params: str, exit_code: int = 0) -> dict[str, Any]:
    """The report of a run at tiny."""
    path = image if isinstance(image, Path) else tmp_path / "a.elf"
    if isinstance(image, bytes):
        path.write_bytes(image)
    asked = [word for param in (f"elf={path}", *params) for word in ("-p", param)]
    assert main(["run", "gpsimd", "--config", "tiny", *asked, "--out", str(tmp_path)]) == exit_code
    return json.loads((tmp_path / "report.json").read_text())


def told(report: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    """How the run of a program ended, which the terminal says too."""
    assert report["end"] == "fault"
    (fault,) = report["faults"]
    shown = capsys.readouterr().out
    assert shown.startswith("FAULT  gpsimd on tiny") and fault["told"] in " ".join(shown.split())
    return fault["told"]


def poked(address: int, value: int) -> bytes:
    return load_constant(10, address) + load_constant(11, value) + store(2, 11, 10, 0)


def bare(text: bytes) -> bytes:
    return elf([code(data=text, address=LOCAL)], entry=LOCAL, symbols=[("main", LOCAL, len(text))])


def public(exit_value: int, *values: int) -> bytes:
    """As a public test suite makes it: code at 2 GiB, a signature, a word to tohost."""
    begin = TOO + 0x1004
    text = b"".join(poked(begin + 4 * n, value) for n, value in enumerate(values))
    text += poked(TOHOST, exit_value << 1 | 1) + jump(0, 0)
    symbols = [("tohost", TOHOST, 4), ("begin_signature", begin, 4), ("end_signature", begin + 4 * len(values), 4)]
    data = (".data", PROGBITS, 3, TOO + 0x1000, bytes(64), 64)
    return elf([(".text", PROGBITS, CODE, TOO, text, len(text)), data], entry=TOO, symbols=symbols)


def test_arrays_text_and_counters(tmp_path: Path) -> None:
    """Each core adds 1 to the second column of its partitions and prints."""
    given = np.arange(8 * 3, dtype=np.uint32).reshape(8, 3) << 20
    np.savez(tmp_path / "in.npz", dst=given)
    text = load_constant(12, BOX + INSTRUCTION.offset("dst_offset") // 8) + immediate(0x03, 2, 12, 12, 0)
    text += immediate(0x13, 1, 12, 12, 8) + immediate(0x13, 5, 12, 12, 8)  # bits 23:0
    for lane in range(WIDTH):
        text += load_constant(10, row_address(lane, 4)) + register(0, 0, 10, 10, 12) + immediate(0x03, 2, 11, 10, 0)
        text += immediate(0x13, 0, 11, 11, 1) + store(2, 11, 10, 0)
    text += b"".join(poked(BOX + Mailbox.PUT, byte) for byte in b"ok\n") + poked(BOX + Mailbox.DONE, 0)
    report = run(tmp_path, bare(text), f"in={tmp_path / 'in.npz'}", f"out={tmp_path / 'out.npz'}")
    assert report["match"] and report["printed"] == {"gp0": "ok\n", "gp1": "ok\n"}
    found = np.load(tmp_path / "out.npz")
    assert list(found) == ["dst"] and found["dst"].dtype == np.uint32
    assert (found["dst"] == given + [0, 1, 0]).all()
    for core in report["gpsimd_cores"]:
        cycles = core["busy"] + core["idle"] + sum(core["stall"].values())
        assert abs(cycles - report["cycles"] // 2) <= 1 and core["instructions"] == len(text) // 4


def test_a_signature(tmp_path: Path) -> None:
    values = [0x1234_5678, 0, 0xFFFF_FFFF]
    report = run(tmp_path, public(0, *values), f"out={tmp_path / 'out.npz'}")
    found = np.load(tmp_path / "out.npz")["signature"]
    assert found.dtype == np.uint32 and found.tolist() == values
    assert [core["instructions"] > 0 for core in report["gpsimd_cores"]] == [True, False]


def test_a_signature_of_a_run_that_failed_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(tmp_path, public(5, 1), f"out={tmp_path / 'out.npz'}", exit_code=1)
    assert told(report, capsys) == "core gp0 of a.elf ended with exit value 5, not 0"
    assert not (tmp_path / "out.npz").exists()


LOAD, STORE = "load outside memory (mcause 5)", "store outside memory (mcause 7)"


@pytest.mark.parametrize(
    ("address", "stores", "why"),
    [
        (0, False, LOAD),
        (0, True, STORE),
        (0x6000_0000, True, STORE),
        (row_address(WIDTH, 0), False, LOAD),
        (row_address(0, TINY.sbuf.partition_bytes), True, STORE),
        (lane_address(0, TINY.sbuf.partition_bytes, WIDTH), False, LOAD),
        (LOCAL + TINY.gpsimd.local_bytes, False, LOAD),
        (BOX + Mailbox.DMA_DONE, True, STORE),
        (LOCAL + 2, False, "misaligned load (mcause 4)"),
    ],
    ids=["null load", "null store", "PSUM", "foreign rows", "row end", "foreign lanes", "local end", "dma", "aligned"],
)  # fmt: skip
def test_an_address_that_a_core_does_not_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: int, stores: bool, why: str
) -> None:
    text = load_constant(10, address) + (store(2, 11, 10, 0) if stores else immediate(0x03, 2, 11, 10, 0))
    report = run(tmp_path, bare(text), exit_code=1)
    assert told(report, capsys) == f"core gp0 of a.elf trapped: {why} at pc {LOCAL + 8:#010x} in main"


@pytest.mark.parametrize("body", [jump(0, 0), (0x10500073).to_bytes(4, "little")], ids=["loop", "asleep"])
def test_a_watchdog(tmp_path: Path, capsys: pytest.CaptureFixture[str], body: bytes) -> None:
    """Core 0 ends well."""
    here = load_constant(10, BOX) + immediate(0x03, 2, 11, 10, Mailbox.CORE)
    text = here + (0x00059463).to_bytes(4, "little") + store(2, 0, 10, Mailbox.DONE) + body  # bne x11, x0, 8
    report = run(tmp_path, bare(text), "watchdog=2000", exit_code=1)
    limit = "2,000 GPSIMD cycles, the limit of its watchdog"
    assert told(report, capsys) == f"core gp1 of a.elf still ran after {limit}"


def compiled(tmp_path: Path, name: str, text: str) -> Path:
    source = tmp_path / name
    source.write_text(text)
    return build([source], options=Options(vector=False)).path


@pytest.mark.firmware
@no_compiler
def test_hello(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    given = rng.integers(-(2**31), 2**31, (8, 9)).astype(np.int32)
    np.savez(tmp_path / "in.npz", src0=given, dst=np.zeros((8, 1), np.int32))
    image = build([HELLO], options=Options(vector=False)).path
    report = run(tmp_path, image, f"in={tmp_path / 'in.npz'}", f"out={tmp_path / 'out.npz'}")
    sums = given.sum(axis=1, dtype=np.int32)
    assert (np.load(tmp_path / "out.npz")["dst"][:, 0] == sums).all()
    for core in range(cores(TINY.partitions)):
        total = int(sums[core * WIDTH : (core + 1) * WIDTH].sum(dtype=np.int64))
        line = f"hello from core {core} of 2: partitions 0 to {WIDTH}, sum {total}\n"
        assert report["printed"][f"gp{core}"] == line


DEEP = "int deep(int n) { volatile int a[64]; a[0] = n; return n ? deep(n - 1) + a[0] : 0; }\n"


@pytest.mark.firmware
@no_compiler
@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        ("int main(void) {\n    return *(volatile int *)0;\n}\n", LOAD, "a.c:2 in main"),
        (DEEP + "int main(void) { return deep(1000); }\n", STORE, "a.c:1 in deep"),
        ("int main(void) {\n\n    __builtin_trap();\n}\n", "illegal instruction (mcause 2)", "a.c:3 in main"),
    ],
    ids=["null pointer", "stack", "trap"],
)
def test_a_trap_tells_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, why: str, line: str
) -> None:
    report = run(tmp_path, compiled(tmp_path, "a.c", text), exit_code=1)
    found = told(report, capsys)
    assert f"trapped: {why} at pc 0x1000" in found and found.endswith(f", {line}")
