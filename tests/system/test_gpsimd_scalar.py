"""Compiled C on the RTL of the scalar core, every instruction compared with the golden hart: results and cycles."""

import importlib.util
import json
from pathlib import Path

import pytest

from firmware.gpsimd.build import build
from firmware.gpsimd.elf import read_image
from firmware.gpsimd.options import Options
from rtl.contract.config import named
from rtl.contract.gpsimd import Mailbox, Region
from sim.run.runner import run_bench
from sim.toolchain import ROOT
from verif.checks.riscv_words import immediate, load_constant

LOOPS = ROOT / "firmware" / "gpsimd" / "bench" / "loops.c"
RAM_BYTES = 1 << 16
no_compiler = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang: make firmware-tools")


def ram_of(path: Path) -> bytes:
    """What local memory holds: the image, and at its bottom, where the core begins, a jump to the entry."""
    image = read_image(path)
    ram = bytearray(RAM_BYTES)
    at = image.start - Region.LOCAL
    ram[at : at + len(image.bytes())] = image.bytes()
    begin = load_constant(5, image.entry) + immediate(0x67, 0, 0, 5, 0)
    ram[: len(begin)] = begin
    return bytes(ram)


def expected() -> dict[str, int]:
    """Results of the loops."""
    x, a, b, data = 1, [], [], []
    for _ in range(256):
        x = (x * 1664525 + 1013904223) % 2**32
        a.append((x - (x >> 31 << 32)) >> 8)
        b.append(x >> 20)
        data.append(x >> 24)
    b = [p + q for p, q in zip(a, b, strict=True)]
    gathered = 0
    for n in data:
        gathered ^= a[n]
    return {
        "sum": sum(a),
        "add": b[-1],
        "dot": sum(p * q for p, q in zip(a, b, strict=True)),
        "prefix": sum(a),
        "histogram": sum(n & 63 == 5 for n in data),
        "largest": a.index(max(a)),
        "nonzero": sum(n & 3 != 0 for n in data),
        "gather": gathered,
    }


@pytest.mark.sim
@pytest.mark.firmware
@no_compiler
def test_loops_compute_and_take_few_cycles(tmp_path: Path) -> None:
    ram = tmp_path / "ram.bin"
    ram.write_bytes(ram_of(build([LOOPS], options=Options(vector=False)).path))
    bench = "verif.benches.gpsimd.scalar_image"
    options = {"line_bits": 128}
    verdict = run_bench(
        "scalar_core",
        bench,
        named("tiny"),
        options=options,
        planted=True,
        anew=True,
        environment={"PLEXUS_IMAGE": str(ram)},
    )
    verdict.require()
    told = json.loads((verdict.folder / "image.json").read_text())
    assert told["ends"] == [Mailbox.DONE, 42]
    rows = [line.split() for line in told["printed"].splitlines()]
    assert {row[0]: int(row[3]) for row in rows} == {name: value % 2**32 for name, value in expected().items()}
    for name, instructions, cycles, _ in rows:
        print(f"{name:10} {instructions:>6} instructions, {int(cycles) / int(instructions):.3f} cycles each")
    total = sum(int(row[2]) for row in rows) / sum(int(row[1]) for row in rows)
    print(f"{'all':10} {total:.3f} cycles an instruction")
    assert total <= 1.3
