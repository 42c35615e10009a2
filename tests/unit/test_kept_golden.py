"""Bits of the golden machine, kept: by what they depend on, and by nothing else."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.image import Image, build_image
from firmware.workloads import find_workload
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Cause, Queue
from rtl.contract.roles import values
from sim.errors import PlexusError
from sim.run import kept_golden as kept
from sim.run.checking import checked, need_check
from sim.run.kept_golden import BITS_DEPEND_ON, golden_key, keep_golden, kept_golden
from sim.run.result import RunResult
from verif.checks.gpsimd_program import WordImage, gp_load, gp_run, pattern
from verif.golden.machine import GoldenMachine

WORKLOADS = (
    ("gemm", {"m": 16, "k": 16, "n": 16}),
    ("attention", {"heads": 1, "seq": 16, "head": 8}),
    ("softmax", {"rows": 8, "columns": 16}),
    ("layernorm", {"rows": 8, "columns": 16}),
    ("ffn", {"tokens": 8, "width": 8, "hidden": 8}),
    ("transpose", {"rows": 8, "columns": 8}),
    ("dma", {"rows": 8, "row_bytes": 40, "direction": "both"}),
)


def image_of(cfg: Config, workload: str = "gemm", seed: int = 0) -> Image:
    found = find_workload(workload)
    return build_image(found.build(cfg, found.complete(dict(WORKLOADS)[workload]), seed))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path / "build"))


class _Watched:
    """A section of a configuration, or all of it, that notes what is read of it."""

    def __init__(self, config: Any, prefix: str, read: set[str]):
        self._config, self._prefix, self._read = config, prefix, read

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._config, name)
        if dataclasses.is_dataclass(value):
            return _Watched(value, f"{name}.", self._read)
        if name in {f.name for f in dataclasses.fields(self._config)}:
            self._read.add(f"{self._prefix}{name}")
        elif name == "groups":  # of the rows: properties read by themselves
            self._read.add("tensor.row_groups")
        elif name == "partition_bytes" and self._prefix == "psum.":
            self._read |= {"psum.banks", "psum.bank_bytes"}
        else:
            raise AssertionError(f"{self._prefix}{name} is a property that this test does not know")
        return value


def test_the_golden_machine_reads_nothing_else_of_a_configuration() -> None:
    """So a key over these fields names its bits. Programs of all engines, and the checks of all instructions."""
    cfg, read = named("tiny"), set[str]()
    for workload, _ in WORKLOADS:
        machine = GoldenMachine(_Watched(cfg, "", read))  # pyright: ignore[reportArgumentType]
        machine.load(image_of(cfg, workload))
        assert not machine.run().faults
    machine = GoldenMachine(_Watched(cfg, "", read))  # pyright: ignore[reportArgumentType]
    machine.load(WordImage(words={Queue.GPSIMD: [gp_load(pattern("src0", 0, 4, 0, 1), 3), gp_run(0, 3)]}))
    assert [fault.cause for fault in machine.run().faults] == [Cause.GP_TRAP]
    assert read <= set(BITS_DEPEND_ON) and {"gpsimd.enabled", "gpsimd.local_bytes"} <= read
    assert {"partitions", "tensor.rows", "sbuf.partition_bytes", "scalar.table_rows", "hbm.capacity_mib"} <= read


@pytest.mark.parametrize("key", sorted(values(named("tiny"))))
def test_a_key_is_of_what_bits_depend_on(key: str) -> None:
    cfg = named("tiny")
    image = image_of(cfg)
    other = {"partitions": "partitions=16", "tensor.moving_max": "tensor.moving_max=32", "dma.engines": ""}
    value = values(cfg)[key]
    text = other.get(key) or (f"{key}={str(not value).lower()}" if isinstance(value, bool) else "")
    if key == "fabric.endpoint_bits":
        text = f"{key}=gen1"
    elif isinstance(value, tuple):
        text = f"{key}={':'.join(str(n + 1) for n in value)}"
    for changed in [text] if text else [f"{key}={new}" for new in (2 * int(value), int(value) // 2)]:
        try:
            variant = load("tiny", [changed])
        except ValueError:
            continue
        assert (golden_key(variant, image) != golden_key(cfg, image)) == (key in BITS_DEPEND_ON)


def test_a_key_is_of_the_whole_program() -> None:
    cfg = named("tiny")
    one, same, other = image_of(cfg), image_of(cfg), image_of(cfg, seed=1)
    assert golden_key(cfg, one) == golden_key(cfg, same) != golden_key(cfg, other)
    moved = dataclasses.replace(one, outputs={})
    assert golden_key(cfg, moved) != golden_key(cfg, one)


def result(outputs: dict[str, np.ndarray]) -> RunResult:
    return RunResult(
        device="rtl", end="done", message="", cycles=1, engines={}, windows={}, hbm_bytes_read=0, hbm_bytes_written=0,
        conflicts={}, faults=(), outputs=outputs, wall_seconds=0.0, cpu_seconds=0.0, retired=np.zeros(0),
        retired_total=0,
    )  # fmt: skip


def test_kept_bits_are_compared_as_those_of_a_run() -> None:
    cfg = named("tiny")
    image = image_of(cfg)
    machine = GoldenMachine(cfg)
    machine.load(image)
    outputs = dict(machine.run().outputs)
    first = checked(cfg, image, result(outputs))
    again = checked(load("tiny", ["hbm.latency_ns=99"]), image, result(outputs))
    assert first.match and not first.kept and again.match and again.kept
    wrong = {name: bits.copy() for name, bits in outputs.items()}
    next(iter(wrong.values())).reshape(-1)[3] ^= 1
    found = checked(cfg, image, result(wrong))
    assert not found.kept and not found.match and found.first is not None and found.first.count == 1
    keep_golden(golden_key(cfg, image), wrong, {})  # whatever is kept, a right result is no mismatch
    assert checked(cfg, image, result(outputs)).match and checked(cfg, image, result(outputs)).kept
    place = next((Path(kept.build_root()) / "golden").iterdir())
    place.write_bytes(b"torn")
    assert not checked(cfg, image, result(outputs)).kept


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_BYTES", 3000)
    for n in range(4):
        keep_golden(f"k{n}", {"a": np.full(200, n, np.uint32)}, {n: b"text"})
    assert kept_golden("k0") is None
    found = kept_golden("k3")
    assert found is not None and (found.outputs["a"] == 3).all() and found.printed == {3: b"text"}


def test_unchecked_is_said() -> None:
    cfg = named("tiny")
    found = checked(cfg, image_of(cfg), result({}), "none")
    assert found.unchecked and found.match


@pytest.mark.parametrize("text", ["some", "sample", "sample=", "sample=0", "sample=-1", "sample=1.5", "sample=1048577"])
def test_no_other_check_is_taken(text: str) -> None:
    with pytest.raises(PlexusError, match="a check is golden, none or sample=N with N from 1 to 1048576, not"):
        need_check(text)


def test_a_check_has_one_spelling() -> None:
    assert [need_check(text) for text in ("golden", "none", "sample=007")] == ["golden", "none", "sample=7"]


def test_a_sample_is_of_the_program_and_finds_what_lies_in_it() -> None:
    cfg = named("tiny")
    workload = find_workload("gemm")
    image = build_image(workload.build(cfg, workload.complete({"m": 24, "k": 8, "n": 16}), 0))
    machine = GoldenMachine(cfg)
    machine.load(image)
    outputs = dict(machine.run().outputs)
    found = checked(cfg, image, result(outputs), "sample=2")
    again = checked(load("tiny", ["hbm.latency_ns=99"]), image, result(outputs), "sample=2")
    assert found.match and found == again and not found.kept
    assert found.tiles == 2 and 0 < found.elements < found.of == 24 * 16
    seen = 0
    for place in range(0, 24 * 16, 8):
        wrong = {name: bits.copy() for name, bits in outputs.items()}
        next(iter(wrong.values())).reshape(-1)[place + 5] ^= 1
        seen += not checked(cfg, image, result(wrong), "sample=2").match
    assert 8 * seen == found.elements
    whole = checked(cfg, image, result(outputs), "sample=99")
    assert whole.match and whole.elements == whole.of
    assert not checked(cfg, image, dataclasses.replace(result(outputs), end="stuck"), "sample=2").match
