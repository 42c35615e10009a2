"""A model with more room, limited or on other clocks, runs programs of a configuration as a model of its own does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.image import Image, build_image
from firmware.kernel import Kernel
from firmware.program import Instruction, Program
from firmware.workloads import find_workload
from rtl.contract.config import Config, ConfigError, load, named
from rtl.contract.config_fields import Role
from rtl.contract.isa import INSTRUCTION, Opcode, Queue
from rtl.contract.memmap import Space
from rtl.contract.roles import Uses, covers, envelope, needed, roles
from sim.errors import PlexusError
from sim.report.verdict import passed
from sim.run.result import RunResult
from sim.systems.core.run import Run, run_workload
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks.gpsimd_beside import of_words
from verif.checks.gpsimd_program import WordImage, after, copy, nop, then, trigger

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
    "dma.classes": 1,
    "dma.indirect": "false",
    "sbuf.adders": "false",
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


def run(cfg: Config, model: Config, image: Image | WordImage) -> RunResult:
    with VerilatedDevice(cfg, build_core(model).binary, trace_records=1 << 20) as device:
        device.load(of_words(image) if isinstance(image, WordImage) else image)
        return device.run()


def need_equal(own: RunResult, other: RunResult, name: str) -> None:
    """The same cycles, counters, conflicts, retire log, trace, faults and bits."""
    assert (own.end, own.faults, own.progress) == (other.end, other.faults, other.progress), name
    assert (own.cycles, own.engines, own.windows) == (other.cycles, other.engines, other.windows), name
    assert own.conflicts == other.conflicts and own.hbm == other.hbm and own.gpsimd_cores == other.gpsimd_cores, name
    assert np.array_equal(own.retired, other.retired), name
    assert own.trace is not None and other.trace is not None and not own.trace.lost
    assert np.array_equal(own.trace.records, other.trace.records), name
    assert np.array_equal(own.trace.beats, other.trace.beats), name
    for tensor, bits in own.outputs.items():
        assert np.array_equal(bits, other.outputs[tensor]), (name, tensor)


def need_lockstep(cfg: Config, model: Config) -> None:
    """All workloads end, and show the same."""
    for name, params in WORKLOADS:
        workload = find_workload(name)
        image = build_image(workload.build(cfg, workload.complete(params), 0))
        own, other = run(cfg, cfg, image), run(cfg, model, image)
        assert own.end == "done", name
        need_equal(own, other, name)


@pytest.mark.parametrize("changed", [LESS, KNOBS | CLOCKS], ids=["rooms", "knobs and clocks"])
def test_all_at_once(changed: Mapping[str, Any]) -> None:
    """Without GPSIMD cores, which no workload here asks: three models in half of the time."""
    without = "gpsimd.enabled=false"
    cfg = load("tiny", [without, *(f"{key}={value}" for key, value in changed.items())])
    model = load("tiny", [without, *ROOMY])
    assert covers(model, cfg)
    need_lockstep(cfg, model)


def test_without_gpsimd_cores_adders_classes_and_indices_where_they_have_nothing_to_do() -> None:
    cfg, model = named("tiny"), needed(named("tiny"))
    assert (cfg.gpsimd.enabled, cfg.sbuf.adders, cfg.dma.classes, cfg.dma.indirect) == (True, True, 4, True)
    assert (model.gpsimd.enabled, model.sbuf.adders, model.dma.classes, model.dma.indirect) == (False, False, 1, False)
    need_lockstep(cfg, model)


@pytest.mark.parametrize(
    "more",
    [(), pytest.param(("dma.rings=4", "dma.weights=3:1:5:2", "dma.strict_class=2"), marks=pytest.mark.regress)],
    ids=["tiny", "four rings, a class first"],
)
@pytest.mark.parametrize("uses", [Uses.SUMS, Uses.CLASSES], ids=lambda uses: uses.name.lower())
def test_with_no_more_than_sums_or_classes(uses: Uses, more: Sequence[str]) -> None:
    """Four long copies at once, which the rings bring to all partitions, in one format or of four classes."""
    cfg = load("tiny", more)
    model = needed(cfg, uses)
    assert (model.gpsimd.enabled, model.sbuf.adders, model.dma.classes, model.dma.indirect) == (False, True, 4, True)
    k = Kernel(cfg, "uses")
    rng, shape = np.random.default_rng(5), (cfg.partitions, 200)
    sources = [k.hbm(f"x{n}", shape, "int32", rng.integers(0, 100, shape, np.uint32)) for n in range(4)]
    tiles = [k.sbuf(f"t{n}", partitions=shape[0], columns=shape[1], dtype="int32") for n in range(4)]
    for n, tile in enumerate(tiles):
        k.dma(tile[:, :], sources[n], ring=n % cfg.dma.rings)
    for n, tile in enumerate(tiles):
        how: dict[str, Any] = {"add": "int32"} if uses == Uses.SUMS else {"class_": n}
        k.dma(tile[:, :], sources[3 - n], ring=n % cfg.dma.rings, **how)
    for n, tile in enumerate(tiles):
        k.dma(k.hbm(f"y{n}", shape, "int32"), tile[:, :], ring=n % cfg.dma.rings)
    program = k.program()
    assert program.uses == uses
    image = build_image(program)
    own, other = run(cfg, cfg, image), run(cfg, model, image)
    assert own.end == "done"
    need_equal(own, other, str(uses))


@pytest.mark.parametrize("end", ["done", "fault", "stuck"])
def test_the_gpsimd_queue_waits_and_signals_without_its_engine(end: str) -> None:
    """A token from queue to queue, and copies; it stays out, or an opcode that is none faults beside it."""
    cfg, queues = named("tiny"), list(Queue)
    words: dict[Queue, list[int]] = {}
    for n, queue in enumerate(queues):
        turns = [nop(**after(10 + n, turn + 1), **then(10 + (n + 1) % len(queues))) for turn in range(40)]
        words[queue] = [nop(**then(10)), *turns] if queue == Queue.SYNC else turns
    if end == "stuck":
        del words[Queue.GPSIMD][-1]
    if end == "fault":
        words[Queue.GPSIMD][-1] = INSTRUCTION.pack({"opcode": 255})
    # and copies: the model has a ring less
    words[Queue.GPSIMD][:0] = [trigger(1), trigger(0, **then(30))]
    rows = (Space.HBM, 0)
    descriptors = [[copy((Space.SBUF, 64 * n), rows, 4, 40, 31)] for n in range(2)]
    image = WordImage(words=words, descriptors=descriptors)
    own, other = run(cfg, cfg, image), run(cfg, needed(cfg), image)
    assert own.end == end and own.engines["gpsimd"].stall["semaphore"] > 0
    need_equal(own, other, end)


def test_whose_programs_need_gpsimd_cores() -> None:
    """Loading one is enough, and reading one."""
    for opcode in (Opcode.GP_LOAD, Opcode.GP_RUN, Opcode.GP_STORE, Opcode.NOP):
        queues = {Queue.GPSIMD: [Instruction(opcode=opcode, update=0)]}
        uses = Program(name="one", config=named("tiny"), queues=queues).uses
        assert uses == (Uses.CORES if opcode != Opcode.NOP else Uses(0))


def test_a_model_that_is_given_must_have_what_the_program_uses(tmp_path: Path) -> None:
    cfg, asked = named("tiny"), {"add": "fp32", "rows": 64, "row_bytes": 64}
    params = find_workload("dma").complete(asked)
    run = Run(workload="dma", params=params, cfg=cfg, model=needed(cfg), check="none", out=tmp_path)
    with pytest.raises(PlexusError, match="dma needs sums beside SBUF, so sbuf.adders must be true in its model too"):
        run_workload(run, Console(quiet=True))


def test_programs_of_cores_are_refused_what_the_configuration_has_not() -> None:
    """Their copies are seen by nobody before."""
    params = find_workload("gpsimd").complete({"program": "iota"})
    for setting in ("sbuf.adders=false", "dma.classes=2", "dma.indirect=false"):
        cfg = load("tiny", [setting, "hbm.latency_ns=50"])
        assert Run(workload="gpsimd", params=params, cfg=cfg).built == cfg
    cfg = load("tiny", ["hbm.latency_ns=50"])
    assert Run(workload="gpsimd", params=params, cfg=cfg).built == named("tiny")


def test_what_there_is_not_of_gpsimd_needs_no_other_model() -> None:
    small = needed(named("small"))
    for more in ("gpsimd.local_bytes=131072", "gpsimd.vectors=false", "gpsimd.clock_mhz=1201"):
        cfg = load("small", [more])
        assert covers(small, needed(cfg)) and not covers(named("small"), cfg), more
    assert not covers(small, named("small")) and not covers(named("small"), small)


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
    classes = [load("small", [f"dma.classes={n}", "dma.weights=3:1:5:2"]) for n in (1, 4)]
    assert envelope(classes) == envelope(classes[::-1]) == classes[1]
    with pytest.raises(ConfigError, match="no model serves both psum.banks=8 and psum.banks=4"):
        envelope([few, load("small", ["psum.banks=4"])])


def test_a_variant_that_needs_less_runs_on_the_model_of_its_base(tmp_path: Path) -> None:
    cfg = load("tiny", ["dma.rings=1", "hbm.latency_ns=50", "gpsimd.vectors=false"])
    report = run_workload(
        Run(workload="gemm", params=WORKLOADS[0][1], cfg=cfg, check="none", out=tmp_path), Console(quiet=True)
    )
    assert report["config_model"] == {
        "dma.rings": 2,
        "dma.classes": 1,
        "dma.indirect": False,
        "sbuf.adders": False,
        "hbm.latency_ns": 25,
        "gpsimd.enabled": False,
    }
    assert (report["match"], report["golden"]) == ("unchecked", "none") and passed(report)
    more = Run(workload="gemm", params=WORKLOADS[0][1], cfg=load("tiny", ["dma.rings=3"]))
    assert more.built == needed(more.cfg)
    cores = {name: find_workload(name).complete(params) for name, params in CORE_PROGRAMS}
    assert all(Run(workload=name, params=params, cfg=more.cfg).built is more.cfg for name, params in cores.items())
