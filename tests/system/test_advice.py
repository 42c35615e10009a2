"""Every advice is true: who follows it has a shorter run. By kernels in two forms, and by changed fields."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.image import build_image
from firmware.kernel import Kernel
from rtl.contract.config import Config, load
from sim.advice.advise import RULES, advise
from sim.advice.facts import Facts, facts_of
from sim.advice.page import PAGE, page
from sim.run.device import find_device
from sim.systems.core.run import Run, run_workload
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.trace.critical import critical_path
from sim.trace.path_states import path_states
from sim.trace.recorded import load_trace
from sim.trace.recording import record
from verif.checks.advice_kernels import KERNELS

pytestmark = pytest.mark.sim

NARROW, FAR = "hbm.bytes_per_cycle=8", "hbm.latency_ns=400"
BEHIND = {"fetched-bytes": ["hbm.bytes_per_cycle=4"], "fetch": [FAR]}
"""The memory that a kernel's rule is about."""

SOFTMAX = ("softmax", {"rows": 64, "columns": 64})
_ROWS = ("dma", {"rows": 64, "row_bytes": 2048})
SETTINGS: list[tuple[str, str, Mapping[str, Any], Sequence[str], list[str]]] = [
    ("wider-ways", "dma", {"rows": 32, "row_bytes": 4096}, [NARROW], ["hbm.bytes_per_cycle=16"]),
    ("wider-ways", "dma", {"rows": 32, "row_bytes": 2048, "direction": "both"}, [NARROW], ["hbm.bytes_per_cycle=16"]),
    ("wider-ways", "gemm", {"m": 8, "k": 256, "n": 256}, [NARROW], ["hbm.bytes_per_cycle=16"]),
    ("wider-ways", "gemm", {"m": 8, "k": 256, "n": 256, "sparsity": "4:16"}, [NARROW], ["hbm.bytes_per_cycle=16"]),
    ("wider-ways", "softmax", {"rows": 32, "columns": 64}, ["hbm.bytes_per_cycle=4"], ["hbm.bytes_per_cycle=8"]),
    ("latency", "dma", {"rows": 4, "row_bytes": 256}, [FAR], ["hbm.latency_ns=200"]),
]
"""Rule, workload, parameters, what is changed first, what the rule says."""

OWN_MODELS: list[tuple[str, str, Mapping[str, Any], Sequence[str], list[str]]] = [
    ("exp-rate", *SOFTMAX, ["vector.exp_rate=1"], ["vector.exp_rate=2"]),
    ("engine-clock", *SOFTMAX, ["vector.clock_mhz=600"], ["vector.clock_mhz=1200"]),
    ("in-flight", *_ROWS, ["dma.buffer_bytes=512", "hbm.latency_ns=300"], ["dma.buffer_bytes=1024"]),
    ("wider-ways", *_ROWS, [], ["hbm.port_bytes=64", "hbm.bytes_per_cycle=64"]),
    ("fetch", "gemm", {"m": 64, "k": 64, "n": 64}, [FAR], ["issue.queue_depth=8"]),
    (
        "larger-array", "gemm", {"m": 64, "k": 64, "n": 64},
        ["partitions=16", "tensor.rows=8"], ["tensor.rows=16", "tensor.cols=16"],
    ),
]  # fmt: skip
"""The same, where fields change the model."""


MEMORIES = [[], [NARROW], [FAR, "issue.queue_depth=2"], ["hbm.latency_ns=300", "dma.buffer_bytes=512"]]
RUNS: list[tuple[str, Mapping[str, Any]]] = [
    ("gemm", {"m": 64, "k": 64, "n": 64}),
    ("gemm", {"m": 8, "k": 256, "n": 256}),
    ("gemm", {"m": 8, "k": 256, "n": 8}),
    ("gemm", {"m": 64, "k": 64, "n": 64, "dtype": "mxfp8"}),
    ("attention", {"heads": 1, "seq": 64, "head": 8}),
    ("softmax", {"rows": 64, "columns": 64}),
    ("softmax", {"rows": 64, "columns": 64, "dtype": "fp32"}),
    ("softmax", {"rows": 64, "columns": 128, "online": 32}),
    ("layernorm", {"rows": 32, "columns": 64}),
    ("ffn", {"tokens": 32, "width": 32, "hidden": 64}),
    ("transpose", {"rows": 64, "columns": 64}),
    ("transpose", {"rows": 64, "columns": 64, "engine": "vector"}),
    ("dma", {"rows": 64, "row_bytes": 64}),
    ("dma", {"rows": 64, "row_bytes": 2048}),
    ("dma", {"rows": 64, "row_bytes": 2048, "direction": "both"}),
    ("dma", {"rows": 64, "row_bytes": 2048, "direction": "sbuf"}),
]
"""What every advice with fields is followed on, behind each of MEMORIES."""


def run(workload: str, params: Mapping[str, Any], cfg: Config, out: Path, **more: Any) -> dict[str, Any]:
    return run_workload(Run(workload=workload, params=params, cfg=cfg, out=out, **more), Console(quiet=True))


def follow(case: tuple[str, str, Mapping[str, Any], Sequence[str], list[str]], out: Path) -> None:
    rule, workload, params, before, says = case
    first = run(workload, params, load("tiny", before), out)
    told = {advice["rule"]: advice["set"] for advice in first["advice"]}
    assert told.get(rule) == says
    changed = {text.split("=")[0] for text in says}
    kept = [text for text in before if text.split("=")[0] not in changed]
    second = run(workload, params, load("tiny", [*kept, *says]), out)
    assert second["match"] and second["cycles"] < 0.95 * first["cycles"]


def simulated(rule: str, followed: bool) -> Facts:
    """A kernel of KERNELS on the RTL, its bits compared with the golden machine's."""
    cfg = load("tiny", BEHIND.get(rule, ()))
    kernel = Kernel(cfg, rule)
    program = kernel.program(macs=KERNELS[rule](kernel, followed))
    image = build_image(program)
    with VerilatedDevice(cfg, build_core(cfg).binary, trace_records=1 << 20) as device:
        device.load(image)
        result = device.run()
    golden = find_device("golden")(cfg)
    golden.load(image)
    for name, bits in golden.run().outputs.items():
        assert np.array_equal(result.outputs[name], bits), name
    assert result.end == "done" and result.trace is not None
    return facts_of(cfg, program, result, record(result.trace, result.retired, program))


@pytest.mark.parametrize("rule", KERNELS)
def test_a_kernel_that_follows_is_faster(rule: str) -> None:
    before, after = simulated(rule, False), simulated(rule, True)
    assert rule in [advice.rule for advice in advise(before)]
    assert rule not in [advice.rule for advice in advise(after)]
    assert after.result.cycles < 0.9 * before.result.cycles


@pytest.mark.parametrize("case", SETTINGS, ids=lambda case: f"{case[0]}-{case[1]}")
def test_a_configuration_that_follows_is_faster(
    case: tuple[str, str, Mapping[str, Any], Sequence[str], list[str]], tmp_path: Path
) -> None:
    follow(case, tmp_path)


@pytest.mark.regress
@pytest.mark.parametrize("case", OWN_MODELS, ids=lambda case: f"{case[0]}-{case[1]}")
def test_a_model_that_follows_is_faster(
    case: tuple[str, str, Mapping[str, Any], Sequence[str], list[str]], tmp_path: Path
) -> None:
    follow(case, tmp_path)


@pytest.mark.regress
@pytest.mark.parametrize("memory", MEMORIES, ids=" ".join)
def test_no_advice_with_fields_is_wrong(memory: list[str], tmp_path: Path) -> None:
    """Whatever the rules say to set, whether it is the first advice or the last, the run is not longer for it."""
    wrong: list[str] = []
    for workload, params in RUNS:
        first = run(workload, params, load("tiny", memory), tmp_path)
        for advice in first["advice"]:
            changed = {text.split("=")[0] for text in advice["set"]}
            kept = [text for text in memory if text.split("=")[0] not in changed]
            if changed:
                second = run(workload, params, load("tiny", [*kept, *advice["set"]]), tmp_path)
                if second["cycles"] >= first["cycles"]:
                    wrong.append(f"{workload} {params}: {advice['set']}, {first['cycles']} to {second['cycles']}")
    assert not wrong


def test_no_rule_applies_to_a_run_that_is_bound_by_full_beats(tmp_path: Path) -> None:
    report = run("gemm", {"m": 64, "k": 64, "n": 64}, load("tiny"), tmp_path)
    assert report["advice"] == report["relief_set"] == []
    assert report["relief"].startswith("No rule applies; a longer problem would hide")


def test_every_rule_is_followed_here() -> None:
    followed = {*KERNELS, *(case[0] for case in (*SETTINGS, *OWN_MODELS))}
    assert followed == {rule.name for rule in RULES} and len(RULES) >= 12


def test_the_page_is_of_these_rules() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m sim.advice.page"


def test_the_path_is_all_of_the_run(tmp_path: Path) -> None:
    report = run("ffn", {"tokens": 16, "width": 16, "hidden": 16}, load("tiny"), tmp_path)
    recorded = load_trace(tmp_path)
    assert sum(path_states(recorded, critical_path(recorded), 4).values()) == report["cycles"]


def test_without_a_trace_the_counters_of_the_busiest_engine_speak(tmp_path: Path) -> None:
    report = run("gemm", {"m": 8, "k": 256, "n": 256}, load("tiny", [NARROW]), tmp_path, trace=False)
    assert report["advice"][0]["rule"] == "wider-ways" and report["relief_set"] == ["hbm.bytes_per_cycle=16"]
