"""A model with more room, limited or on other clocks, runs programs of a configuration as a model of its own does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.image import Image, build_image
from firmware.workloads import find_workload
from rtl.contract.config import Config, ConfigError, load, named
from rtl.contract.config_fields import Role
from rtl.contract.roles import covers, envelope, roles, unprogrammed
from sim.report.verdict import passed
from sim.run.result import RunResult
from sim.systems.core.run import Run, run_workload
from sim.systems.core.verilated import VerilatedDevice, build_core

pytestmark = pytest.mark.sim

LESS: dict[str, Any] = {
    "tensor.moving_max": 32,
    "tensor.mx": "false",
    "tensor.nvfp4": "false",
    "tensor.sparsity": "false",
    "sbuf.partition_bytes": 4096,
    "scalar.table_rows": 4096,
    "issue.semaphores": 32,
    "dma.rings": 2,
    "hbm.capacity_mib": 8,
}
"""Of every field of Role.ROOM less than ROOMY has."""

KNOBS: dict[str, Any] = {
    "vector.exp_rate": 1,
    "issue.queue_depth": 2,
    "dma.buffer_bytes": 512,
    "dma.burst_bytes": 128,
}
"""Of every field of Role.KNOB less than ROOMY has."""

CLOCKS: dict[str, Any] = {
    "tensor.clock_mhz": 2500,
    "vector.clock_mhz": 960,
    "scalar.clock_mhz": 700,
    "gpsimd.clock_mhz": 600,
}
"""Of every field of Role.CLOCK another value on its side of half the root clock."""

ROOMY = [
    "tensor.moving_max=128",
    "tensor.nvfp4=true",
    "sbuf.partition_bytes=16384",
    "scalar.table_rows=16384",
    "dma.rings=4",
    "hbm.capacity_mib=32",
    "issue.queue_depth=8",
    "dma.buffer_bytes=4096",
    "dma.burst_bytes=1024",
]
WORKLOADS: list[tuple[str, Mapping[str, Any]]] = [
    ("gemm", {"m": 40, "k": 24, "n": 70}),
    ("gemm", {"m": 16, "k": 64, "n": 32, "dtype": "fp16"}),
    ("attention", {"heads": 1, "seq": 32, "head": 8}),
    ("softmax", {"rows": 20, "columns": 48}),
    ("layernorm", {"rows": 12, "columns": 40}),
    ("ffn", {"tokens": 16, "width": 16, "hidden": 16}),
    ("transpose", {"rows": 20, "columns": 24}),
    ("dma", {"rows": 24, "row_bytes": 200, "direction": "both"}),
]


CORE_PROGRAMS: list[tuple[str, Mapping[str, Any]]] = [("gpsimd", {"program": "iota"}), ("moe", {"router": "gpsimd"})]
"""Workloads that start GPSIMD cores."""


def run(cfg: Config, model: Config, image: Image) -> RunResult:
    with VerilatedDevice(cfg, build_core(model).binary) as device:
        device.load(image)
        return device.run()


def need_lockstep(cfg: Config, model: Config) -> None:
    """The same cycles, counters, conflicts, retire log and bits of all workloads."""
    for name, params in WORKLOADS:
        workload = find_workload(name)
        image = build_image(workload.build(cfg, workload.complete(params), 0))
        own, other = run(cfg, cfg, image), run(cfg, model, image)
        assert own.end == other.end == "done", name
        assert (own.cycles, own.engines, own.windows) == (other.cycles, other.engines, other.windows), name
        assert own.conflicts == other.conflicts and own.hbm == other.hbm, name
        assert np.array_equal(own.retired, other.retired), name
        for tensor, bits in own.outputs.items():
            assert np.array_equal(bits, other.outputs[tensor]), (name, tensor)


@pytest.mark.parametrize("changed", [LESS, KNOBS | CLOCKS], ids=["rooms", "knobs and clocks"])
def test_all_at_once(changed: Mapping[str, Any]) -> None:
    cfg, model = load("tiny", [f"{key}={value}" for key, value in changed.items()]), load("tiny", ROOMY)
    assert covers(model, cfg)
    need_lockstep(cfg, model)


def test_without_vectors_where_no_core_starts() -> None:
    cfg = named("tiny")
    assert cfg.gpsimd.vectors and not unprogrammed(cfg).gpsimd.vectors
    need_lockstep(cfg, unprogrammed(cfg))


@pytest.mark.regress
@pytest.mark.parametrize("key", LESS | KNOBS | CLOCKS)
def test_each_alone(key: str) -> None:
    cfg, model = load("tiny", [f"{key}={(LESS | KNOBS | CLOCKS)[key]}"]), load("tiny", ROOMY)
    assert covers(model, cfg)
    need_lockstep(cfg, model)


def test_every_field_is_tried() -> None:
    small = named("small")
    for role, changed in ((Role.ROOM, LESS), (Role.KNOB, KNOBS), (Role.CLOCK, CLOCKS)):
        assert {key for key, mine in roles(small).items() if mine == role} == set(changed)
    assert {key for key, role in roles(small).items() if role == Role.HOST} == {"hbm.bytes_per_cycle", "hbm.latency_ns"}


def test_who_covers_whom() -> None:
    small = named("small")
    assert covers(
        small, load("small", ["hbm.latency_ns=1", "dma.rings=2", "tensor.mx=false", "sbuf.partition_bytes=8192"])
    )
    for more in (
        "dma.rings=5",
        "tensor.nvfp4=true",
        "psum.banks=4",
        "dma.engines=8",
        "vector.clock_mhz=1201",
        "issue.queue_depth=32",
    ):
        assert not covers(small, load("small", [more]))
    assert covers(small, load("small", [f"{key}={value}" for key, value in (KNOBS | CLOCKS).items()]))
    assert not covers(named("full"), small)


def test_an_envelope_has_the_most_of_all() -> None:
    few, many = (
        load("small", ["dma.rings=2", "sbuf.partition_bytes=131072"]),
        load("small", ["dma.rings=8", "tensor.mx=false"]),
    )
    both = envelope([few, many])
    assert covers(both, few) and covers(both, many)
    assert (both.dma.rings, both.sbuf.partition_bytes, both.tensor.mx) == (8, 131072, True)
    with pytest.raises(ConfigError, match="no model serves both psum.banks=8 and psum.banks=4"):
        envelope([few, load("small", ["psum.banks=4"])])


def test_a_variant_that_needs_less_runs_on_the_model_of_its_base(tmp_path: Path) -> None:
    cfg = load("tiny", ["dma.rings=1", "hbm.latency_ns=50"])
    report = run_workload(
        Run(workload="gemm", params=WORKLOADS[0][1], cfg=cfg, check="none", out=tmp_path), Console(quiet=True)
    )
    assert report["config_model"] == {"dma.rings": 2, "hbm.latency_ns": 25, "gpsimd.vectors": False}
    assert (report["match"], report["golden"]) == ("unchecked", "none") and passed(report)
    more = Run(workload="gemm", params=WORKLOADS[0][1], cfg=load("tiny", ["dma.rings=3"]))
    assert more.built == unprogrammed(more.cfg)
    cores = {name: find_workload(name).complete(params) for name, params in CORE_PROGRAMS}
    assert all(Run(workload=name, params=params, cfg=more.cfg).built is more.cfg for name, params in cores.items())
