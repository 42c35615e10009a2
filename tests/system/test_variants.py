"""The same program on other cores: the structural form, and a configuration in which every size is odd."""

import numpy as np
import pytest

from firmware.image import build_image
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import Config, load, named
from rtl.contract.roles import needed
from sim.run.device import find_device
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core

TINY = named("tiny")
ODD = load(
    "tiny",
    (
        "dma.rings=1",
        "hbm.ports=2",
        "hbm.bytes_per_cycle=37",
        "hbm.latency_ns=61",
        "vector.clock_mhz=961",
        "vector.exp_rate=2",
        "scalar.clock_mhz=1801",
        "sbuf.partition_bytes=5136",
        "sbuf.banks=2",
        "psum.banks=2",
        "psum.bank_bytes=512",
        "issue.queue_depth=2",
        "tensor.nvfp4=true",
    ),
)


def run(program: Program, cfg: Config, form: str) -> RunResult:
    with VerilatedDevice(cfg, build_core(needed(cfg), array=form).binary) as device:
        device.load(build_image(program))
        return device.run()


def golden_outputs(program: Program, cfg: Config) -> dict[str, np.ndarray]:
    golden = find_device("golden")(cfg)
    golden.load(build_image(program))
    return golden.run().outputs


@pytest.mark.sim
@pytest.mark.parametrize("dtype", ["bf16", "tf32", "fp32", "fp8", "mxfp8", "w4a8"])
def test_both_forms_give_the_same_bits_in_the_same_cycles(dtype: str) -> None:
    k = 21 if dtype in ("bf16", "tf32", "fp32") else 96
    program = find_workload("gemm").build(TINY, {"m": 19, "k": k, "n": 70, "dtype": dtype}, 3)
    native, structural = run(program, TINY, "native"), run(program, TINY, "structural")
    for name, bits in golden_outputs(program, TINY).items():
        assert np.array_equal(native.outputs[name], bits)
        assert np.array_equal(structural.outputs[name], bits)
    assert structural.cycles == native.cycles
    assert structural.engines == native.engines
    assert np.array_equal(structural.retired, native.retired)


@pytest.mark.sim
@pytest.mark.parametrize(
    ("workload", "params"),
    [
        ("gemm", {"m": 19, "k": 21, "n": 70, "dtype": "fp16"}),
        ("gemm", {"m": 19, "k": 112, "n": 70, "dtype": "nvfp4"}),
        ("gemm", {"m": 9, "k": 96, "n": 20, "dtype": "mxfp8", "resident": True}),
        ("gemm", {"m": 20, "k": 160, "n": 11, "dtype": "w4a8", "out": "bf16"}),
        ("dma", {"rows": 11, "row_bytes": 77, "direction": "both"}),
        ("softmax", {"rows": 9, "columns": 52}),
        ("layernorm", {"rows": 9, "columns": 52}),
        ("attention", {"seq": 21, "head": 6, "heads": 2, "causal": True}),
    ],
    ids=str,
)
def test_odd_core_leaves_the_golden_bits(workload: str, params: dict[str, object]) -> None:
    program = find_workload(workload).build(ODD, params, 1)
    got = run(program, ODD, "native")
    assert got.end == "done"
    for name, bits in golden_outputs(program, ODD).items():
        assert np.array_equal(got.outputs[name], bits)
    for engine in got.engines.values():
        assert engine.total == got.cycles
