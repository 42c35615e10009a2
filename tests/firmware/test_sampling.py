"""Result tiles by golden chains alone: the same bits as those of the whole golden machine."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from firmware.image import Image, build_image
from firmware.kernel import Kernel
from firmware.numbers import encode
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Opcode, Queue
from verif.checks.random_kernel import random_kernel
from verif.golden import sampling
from verif.golden.footprints import Footprint, instruction_footprint
from verif.golden.machine import GoldenMachine
from verif.golden.memory import Memory, element_dtype, offsets
from verif.golden.sampling import SampledMachine

TINY = named("tiny")
SPARSE = load("tiny", ["tensor.mx=true", "tensor.nvfp4=true", "tensor.sparsity=true"])

PROGRAMS: dict[str, Callable[[], Program]] = {
    f"{name} {number}": lambda name=name, params=params: find_workload(name).build(TINY, params, 1)
    for number, (name, params) in enumerate(
        (
            ("gemm", {"m": 40, "k": 32, "n": 64}),
            ("softmax", {"rows": 40, "columns": 40}),
            ("layernorm", {"rows": 40, "columns": 40}),
            ("attention", {"seq": 20, "head": 8, "heads": 2}),
            ("attention", {"seq": 20, "head": 8, "heads": 2, "kv_heads": 1, "causal": True, "window": 6}),
            ("ffn", {"tokens": 24, "width": 12, "hidden": 20}),
            ("gated-ffn", {"tokens": 24, "width": 12, "hidden": 20}),
            ("rope", {"tokens": 24, "heads": 2, "head": 8}),
            ("transpose", {"rows": 24, "columns": 30}),
            ("transpose", {"rows": 24, "columns": 30, "engine": "tensor"}),
            ("elementwise", {"op": "gelu", "rows": 24, "columns": 40}),
            ("moe", {"experts": 2, "tokens": 8, "d": 8, "f": 8, "top_k": 1, "mode": "whole"}),
            ("dma", {"rows": 9, "row_bytes": 33, "direction": "both"}),
        )
    )
}
PROGRAMS |= {
    f"gemm {dtype}": lambda dtype=dtype, more=more: find_workload("gemm").build(
        SPARSE, {"m": 24, "k": 64, "n": 40, "dtype": dtype, **more}, 1
    )
    for dtype, more in (("fp32", {}), ("mxfp8", {}), ("mxfp4", {}), ("nvfp4", {}), ("bf16", {"sparsity": "4:16"}))
}
PROGRAMS |= {
    f"random {seed}": lambda seed=seed: random_kernel(TINY, seed, statements=60, elements=seed % 2 == 1)
    for seed in range(12)
}
PROGRAMS |= {
    f"indices {seed}": lambda seed=seed: random_kernel(TINY, seed, statements=40, indices=True) for seed in range(4)
}


def sums() -> Program:
    """Sums that go on from instruction to instruction, in both engines, each stored in the end alone; MX elements."""
    k = Kernel(TINY, "sums")
    rng = np.random.default_rng(1)
    x = k.hbm("x", (8, 32), "bf16", encode(rng.standard_normal((8, 32), np.float32), "bf16"))
    tile, out = (k.sbuf(name, partitions=8, columns=32, dtype="bf16") for name in ("tile", "out"))
    column = k.sbuf("column", partitions=8, columns=2, dtype="fp32")
    elements, scales = (
        k.sbuf(name, partitions=8, columns=n, dtype=dtype) for name, n, dtype in (("e", 32, "e5m2"), ("s", 8, "uint8"))
    )
    k.dma(tile[:, :], x[:, :])
    for n, reduce in enumerate(("reset_reduce", "reduce", "reduce")):
        some = slice(8 * n, 8 * n + 8)
        last = n == 2
        k.vector.exp(out[:, some], tile[:, some], 0.5, reduce=reduce, store=column[:, 0:1] if last else None)
        k.scalar.activation(out[:, some], tile[:, some], "copy", reduce=reduce, store=column[:, 1:2] if last else None)
    k.vector.quantize_mx(elements[:, :], tile[:, :], scales[:, :])
    for name, what in (("sums", column), ("elements", elements), ("scales", scales)):
        k.dma(k.hbm(name, (8, what.columns), what.dtype)[:, :], what[:, :])
    return k.program()


PROGRAMS["sums"] = sums


@cache
def image_of(name: str) -> tuple[Config, Image]:
    program = PROGRAMS[name]()
    return program.config, build_image(program)


def wrong_bits(cfg: Config, image: Image, count: int, seed: int, full: Mapping[str, np.ndarray]) -> int:
    """Elements of result tiles that the sampled machine leaves otherwise than the whole one."""
    machine = SampledMachine(cfg, count, seed)
    machine.load(image)
    outputs = machine.run().outputs
    assert machine.tiles == min(count, machine.tiles) and machine.kept <= machine.steps
    assert sum(map(len, machine.chosen.values())) or not machine.tiles
    return sum(
        int((outputs[name].reshape(-1)[at] != full[name].reshape(-1)[at]).sum()) for name, at in machine.chosen.items()
    )


def full_bits(cfg: Config, image: Image) -> Mapping[str, np.ndarray]:
    """Of the whole golden machine."""
    machine = GoldenMachine(cfg)
    machine.load(image)
    result = machine.run()
    assert not result.faults
    return result.outputs


@cache
def bits_of(name: str) -> Mapping[str, np.ndarray]:
    """The same of a program of this file."""
    return full_bits(*image_of(name))


@pytest.mark.parametrize("name", PROGRAMS)
def test_sampled_tiles_have_the_bits_of_the_whole_machine(name: str) -> None:
    cfg, image = image_of(name)
    full = bits_of(name)
    for seed in range(4):
        assert wrong_bits(cfg, image, 1, seed, full) == 0
    assert wrong_bits(cfg, image, 1 << 20, 0, full) == 0


class Watched(Memory):
    """Notes which bytes are read and written."""

    def __init__(self, partitions: int, partition_bytes: int):
        super().__init__(partitions, partition_bytes)
        self.was_read, self.was_written = (np.zeros(self.bytes.shape, np.bool_) for _ in range(2))

    def _mark(self, flags: np.ndarray, pattern: AccessPattern) -> np.ndarray:
        first, size = pattern.partition_start, element_dtype(pattern).itemsize
        at = (offsets(pattern)[:, None] + np.arange(size)).reshape(-1)
        rows = flags[first : first + pattern.partition_count]
        rows[:, at] = True
        return at

    def read(self, pattern: AccessPattern) -> Any:
        self._mark(self.was_read, pattern)
        return super().read(pattern)

    def write(self, pattern: AccessPattern, values: Any, mask: Any = None) -> None:
        self._mark(self.was_written, pattern)
        super().write(pattern, values, mask)


class WatchedMachine(GoldenMachine):
    """Holds each instruction's accesses beside its footprint."""

    def load(self, image: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("verif.golden.machine.Memory", Watched)
            super().load(image)
        self.seen: set[Opcode] = set()

    def action(self, f: Any, queue: Queue) -> Any:
        read, commit = super().action(f, queue)
        found = instruction_footprint(f, queue, self.cfg.partitions)

        def check(value: Any) -> None:
            commit(value)
            for name, memory in (("sbuf", self.sbuf), ("psum", self.psum)):
                assert isinstance(memory, Watched)
                for flags, accesses, exact in (
                    (memory.was_read, found.reads, False), (memory.was_written, found.writes, True)
                ):  # fmt: skip
                    told = np.zeros_like(flags)
                    for access in accesses:
                        if access.memory == name:
                            told[access.rows][:, access.at] = True
                    assert not (flags & ~told).any(), (Opcode(f["opcode"]).name, name, exact)
                    assert not exact or (flags == told).all(), (Opcode(f["opcode"]).name, name)
                    flags[:] = False
            self.seen.add(Opcode(f["opcode"]))

        return read, check


def test_footprints_are_what_instructions_touch() -> None:
    seen = set[Opcode]()
    for name in PROGRAMS:
        cfg, image = image_of(name)
        machine = WatchedMachine(cfg)
        machine.load(image)
        assert not machine.run().faults
        seen |= machine.seen
    told = {opcode for opcode in Opcode if Opcode.LOAD_STATIONARY <= opcode < Opcode.GP_LOAD}
    assert seen >= told, told - seen


def without(reads: bool, memory: str) -> Callable[[Mapping[str, int], Queue, int], Footprint]:
    """A footprint that forgets the reads of a memory, or takes its writes for certain."""

    def spoilt(f: Mapping[str, int], queue: Queue, partitions: int) -> Footprint:
        found = instruction_footprint(f, queue, partitions)
        if reads:
            kept = tuple(a for a in found.reads if a.memory != memory)
            return dataclasses.replace(found, reads=kept)
        return dataclasses.replace(found, surely=True)

    return spoilt


@pytest.mark.parametrize("memory", ["sbuf", "psum", "vector sums", "scalar sums", "table", "masks", "weights"])
def test_a_forgotten_dependency_changes_bits(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of dependency is needed by some program of this file."""
    if memory == "weights":
        monkeypatch.setattr(sampling.WeightWays, "needs", lambda *_: frozenset())
    else:
        monkeypatch.setattr(sampling, "instruction_footprint", without(memory != "masks", memory))
    wrong = 0
    for name in reversed(PROGRAMS):
        cfg, image = image_of(name)
        full = bits_of(name)
        wrong += sum(wrong_bits(cfg, image, 1, seed, full) for seed in range(4))
        if wrong:
            return
    raise AssertionError(f"no program needs {memory}")


def test_copies_inside_the_core_are_followed() -> None:
    """Bytes go by HBM twice and by SBUF, in parts of one row."""
    k = Kernel(TINY, "there and back")
    rng = np.random.default_rng(0)
    x = k.hbm("x", (8, 32), "fp32", encode(rng.standard_normal((8, 32), np.float32), "fp32"))
    tile, scratch, y = k.sbuf("t", partitions=8, columns=32, dtype="fp32"), k.hbm("s", (8, 32), "fp32"), None
    y = k.hbm("y", (8, 32), "fp32")
    k.dma(tile[:, :], x[:, :])
    k.dma(scratch[:, 0:16], tile[:, 16:32])
    k.dma(scratch[:, 16:32], tile[:, 0:16])
    k.dma(tile[:, 0:8], scratch[:, 4:12])
    k.dma(y[:, 0:8], tile[:, 0:8])
    k.dma(y[:, 8:32], tile[:, 8:32])
    image = build_image(k.program())
    full = full_bits(TINY, image)
    assert all(wrong_bits(TINY, image, 1, seed, full) == 0 for seed in range(8))
