"""Compiled programs with vectors on the golden engine: what they leave is NumPy's, at every VLEN that a core has."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from firmware.gpsimd.build import build
from firmware.gpsimd.elf import read_image
from firmware.gpsimd.options import Options
from rtl.contract.config import load as load_config
from rtl.contract.gpsimd import Region, cores
from rtl.contract.isa import Queue
from verif.checks.gpsimd_program import WordImage, by_lane, gp_load, gp_run, pattern
from verif.golden.machine import GoldenMachine
from verif.golden.riscv.vector.elementwise import ELEMENTWISE
from verif.golden.riscv.vector.unit import VectorUnit

MISSING = importlib.util.find_spec("ziglang") is None
COUNT = 301
RESULTS_AT, RESULT_BYTES = 1 << 15, 4 * COUNT  # byte of local memory from which results of functions lie in order
IMAGE_AT = 4096
VLENS = {"tiny": 128, "small": 256, "full": 512}

Numbers = NDArray[np.integer]

FUNCTIONS = {
    "add": "for (int i = 0; i < N; i++) o[i] = a[i] + b[i];",
    "shift": "for (int i = 0; i < N; i++) o[i] = (a[i] >> (b[i] & 31)) ^ ((uint32_t)b[i] >> 3);",
    "widen": "for (int i = 0; i < N; i++) o[i] = h[i] * g[i] + h[i];",
    "narrow": "for (int i = 0; i < N; i++) o[i] = (uint8_t)((uint32_t)a[i] >> 11);",
    "select": "for (int i = 0; i < N; i++) o[i] = a[i] < b[i] ? a[i] : 2 * b[i];",
    "divide": "for (int i = 0; i < N; i++) o[i] = a[i] / (g[i] | 1) + a[i] % (h[i] | 1);",
    "reverse": "for (int i = 0; i < N; i++) o[i] = a[N - 1 - i];",
    "gather": "for (int i = 0; i < N; i++) o[i] = b[u[i] + 40];",
    "scatter": "for (int i = 0; i < N; i++) o[i] = 0; for (int i = 0; i < 256; i++) o[p[i]] = a[i];",
    "stride": "for (int i = 0; i < N; i++) o[i] = i < 100 ? u[3 * i] + 2 * u[3 * i + 1] - u[3 * i + 2] : 0;",
    "sum": "int32_t s = 0; for (int i = 0; i < N; i++) s += h[i] * g[i]; for (int i = 0; i < N; i++) o[i] = s;",
    "largest": """int32_t m = a[0];
        for (int i = 0; i < N; i++) m = m > a[i] ? m : a[i];
        for (int i = 0; i < N; i++) o[i] = m;""",
    "average": "for (int i = 0; i < N; i++) o[i] = (u[i] + u[N - 1 - i] + 1) >> 1;",
    "saturate": """for (size_t i = 0, vl; i < N; i += vl) {
        vl = __riscv_vsetvl_e16m2(N - i);
        vint16m2_t sum = __riscv_vsadd_vv_i16m2(__riscv_vle16_v_i16m2(h + i, vl), __riscv_vle16_v_i16m2(g + i, vl), vl);
        __riscv_vse32_v_i32m4(o + i, __riscv_vsext_vf2_i32m4(sum, vl), vl); }""",
    "compress": """for (int i = 0; i < N; i++) o[i] = 0;
        int32_t *to = o;
        for (size_t i = 0, vl; i < N; i += vl) {
        vl = __riscv_vsetvl_e32m4(N - i);
        vint32m4_t x = __riscv_vle32_v_i32m4(a + i, vl);
        vbool8_t keep = __riscv_vmsgt_vx_i32m4_b8(x, 0, vl);
        size_t kept = __riscv_vcpop_m_b8(keep, vl);
        __riscv_vse32_v_i32m4(to, __riscv_vcompress_vm_i32m4(x, keep, vl), kept);
        to += kept; }""",
}  # fmt: skip


def inputs() -> dict[str, Numbers]:
    rng = np.random.default_rng(5)
    whole = np.iinfo(np.int32)
    return {
        "a": rng.integers(whole.min, whole.max, COUNT, np.int32),
        "b": rng.integers(whole.min, whole.max, COUNT, np.int32),
        "h": rng.integers(-(1 << 15), 1 << 15, COUNT, np.int16),
        "g": rng.integers(-(1 << 15), 1 << 15, COUNT, np.int16),
        "u": rng.integers(0, 256, COUNT, np.uint8),
        "p": rng.permutation(256).astype(np.uint8),
    }


def expected(given: Mapping[str, Numbers]) -> dict[str, Numbers]:
    a, b, h, g, u, p = (given[name].astype(np.int64) for name in "abhgup")
    zeros = np.zeros(COUNT, np.int64)
    scattered, thirds, positive = zeros.copy(), zeros.copy(), zeros.copy()
    scattered[p] = a[:256]
    rows = u[:300].reshape(100, 3)
    thirds[:100] = rows[:, 0] + 2 * rows[:, 1] - rows[:, 2]
    positive[: (a > 0).sum()] = a[a > 0]

    def quotient(n: Numbers, d: Numbers) -> Numbers:
        return np.sign(n) * np.sign(d) * (np.abs(n) // np.abs(d))

    return {
        "add": a + b,
        "shift": (a >> (b & 31)) ^ ((b & 0xFFFFFFFF) >> 3),
        "widen": h * g + h,
        "narrow": (a & 0xFFFFFFFF) >> 11 & 255,
        "select": np.where(a < b, a, 2 * b),
        "divide": quotient(a, g | 1) + np.fmod(a, h | 1),
        "reverse": a[::-1],
        "gather": b[u + 40],
        "scatter": scattered,
        "stride": thirds,
        "sum": zeros + (h * g).sum(),
        "largest": zeros + a.max(),
        "average": (u + u[::-1] + 1) >> 1,
        "saturate": np.clip(h + g, -(1 << 15), (1 << 15) - 1),
        "compress": positive,
    }


def source(given: Mapping[str, Numbers]) -> str:
    types = {np.dtype(np.int32): "int32_t", np.dtype(np.int16): "int16_t", np.dtype(np.uint8): "uint8_t"}
    arrays = [
        f"static const {types[values.dtype]} {name}[] = {{{', '.join(map(str, values))}}};"
        for name, values in given.items()
    ]
    functions = [
        f"__attribute__((noinline)) static void f_{name}(int32_t *restrict o) {{ {body} }}"
        for name, body in FUNCTIONS.items()
    ]
    base = f"(int32_t *)({Region.LOCAL:#x} + {RESULTS_AT})"
    calls = [f"f_{name}({base} + {k} * N);" for k, name in enumerate(FUNCTIONS)]
    calls.append(f"int32_t *to = (int32_t *){Region.SBUF_LANES:#x}; for (int i = 0; i < N; i++) to[i] = a[i] ^ b[i];")
    head = ["#include <riscv_vector.h>", "#include <stddef.h>", "#include <stdint.h>", f"enum {{ N = {COUNT} }};"]
    return "\n".join([*head, *arrays, *functions, "int main(void) {", *calls, "return 0; }"])


@pytest.mark.firmware
@pytest.mark.skipif(MISSING, reason="no ziglang: make firmware-tools")
@pytest.mark.parametrize("config", VLENS)
def test_compiled_loops_leave_what_numpy_does(config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = inputs()
    text = tmp_path / "loops.c"
    text.write_text(source(given))
    image = read_image(build([text], options=Options(vector=True, flags=("-O2",))).path)
    met: set[str] = set()
    prepare = VectorUnit.prepare

    def noting(self: VectorUnit, word: int):
        found = prepare(self, word)
        met.update([found[0].name] if found else [])
        assert self.state.vlen == VLENS[config]
        return found

    monkeypatch.setattr(VectorUnit, "prepare", noting)
    cfg = load_config(config, ["gpsimd.vectors=true"])
    lanes = cfg.partitions // cores(cfg.partitions)
    front = (image.start - Region.LOCAL) % (4 * lanes)
    rows = by_lane(bytes(front) + image.bytes(), lanes)
    machine = GoldenMachine(cfg, None)
    where = pattern("src0", 0, lanes, IMAGE_AT, rows.shape[1] // 4)
    load = gp_load(where, 1, image.start - Region.LOCAL - front)
    machine.load(WordImage(words={Queue.GPSIMD: [load, gp_run(image.entry, 1, 0)], Queue.SYNC: ()}))
    machine.sbuf.bytes[:lanes, IMAGE_AT : IMAGE_AT + rows.shape[1]] = rows
    result = machine.run()
    assert not result.faults, result
    local = bytes(machine.cluster.local[0])
    for number, (name, wanted) in enumerate(expected(given).items()):
        at = RESULTS_AT + RESULT_BYTES * number
        found = np.frombuffer(local[at : at + RESULT_BYTES], "<i4")
        assert np.array_equal(found, wanted.astype(np.int32)), (name, found[:8], wanted[:8])
    columns = machine.sbuf.bytes[:lanes].view("<i4").T.reshape(-1)  # words as the window of lanes has them
    assert np.array_equal(columns[:COUNT], given["a"] ^ given["b"])
    print(f"\n{config}: {len(met)} vector instructions: {sorted(met)}")
    assert len(met & set(ELEMENTWISE)) > 15 and {"vcompress", "vrgather", "vredsum", "load strided"} <= met
