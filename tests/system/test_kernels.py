"""Kernels on the core: every bit equals the golden machine's."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernels.minilm_model import encoder_layer
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import Config, named
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks.random_kernel import random_kernel
from verif.checks.random_layer import random_layer
from verif.checks.random_quantize import random_quantize
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY = named("tiny")


def check(program: Program, cfg: Config = TINY) -> None:
    image = build_image(program)
    golden = GoldenMachine(cfg)
    golden.load(image)
    want = golden.run()
    assert want.faults == []
    with VerilatedDevice(cfg, build_core(cfg).binary) as device:
        device.load(image)
        got = device.run()
    assert got.end == "done", f"{got.end}: {got.faults} {got.progress}"
    for name, bits in want.outputs.items():
        wrong = np.argwhere(got.outputs[name] != bits)
        assert not len(wrong), f"{name} differs in {len(wrong)} of {bits.size} elements, first at {wrong[0]}"


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (9, 17, 65), (40, 3, 200), (7, 100, 5), (130, 33, 31)])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_gemm_of_odd_shapes(m: int, k: int, n: int, dtype: str):
    check(find_workload("gemm").build(TINY, {"m": m, "k": k, "n": n, "dtype": dtype}, seed=m))


@pytest.mark.parametrize("direction", ["read", "write", "both", "sbuf"])
@pytest.mark.parametrize(("rows", "row_bytes"), [(None, 512), (61, 33), (200, 7), (3, 700)])
def test_dma(rows: int | None, row_bytes: int, direction: str):
    params: dict[str, Any] = {"rows": rows, "row_bytes": row_bytes, "direction": direction}
    check(find_workload("dma").build(TINY, params, seed=1))


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "online"),
    [(None, 100, "bf16", 0), (19, 33, "fp32", 0), (8, 64, "bf16", 16), (9, 50, "fp16", 7), (1, 1, "bf16", 0)],
)
def test_softmax(rows: int | None, columns: int, dtype: str, online: int):
    params: dict[str, Any] = {"rows": rows, "columns": columns, "dtype": dtype, "online": online}
    program = find_workload("softmax").build(TINY, params, seed=2)
    check(program)


@pytest.mark.parametrize("seed", range(4))
def test_quantize_mx(seed: int):
    check(random_quantize(TINY, seed))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("seq", "head", "heads"), [(20, 8, 1), (150, 12, 3), (33, 20, 2), (1, 1, 1)]
)  # tiles that are not full, several blocks, several tiles of the head axis
def test_attention(seq: int, head: int, heads: int, causal: bool):
    params: dict[str, Any] = {"seq": seq, "head": head, "heads": heads, "causal": causal}
    program = find_workload("attention").build(TINY, params, seed=3)
    check(program)
    golden = GoldenMachine(TINY)
    golden.load(build_image(program))
    assert program.metrics(golden.run().outputs)["cosine"] > 0.9999


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize(("rows", "columns", "dtype"), [(None, 64, "bf16"), (19, 33, "fp32"), (1, 1, "fp16")])
def test_norms(rows: int | None, columns: int, dtype: str, rms: bool):
    params: dict[str, Any] = {"rows": rows, "columns": columns, "dtype": dtype, "rms": rms}
    check(find_workload("layernorm").build(TINY, params, seed=4))


@pytest.mark.parametrize("activation", ["gelu", "silu", "relu"])
@pytest.mark.parametrize(("tokens", "width", "hidden"), [(5, 12, 20), (1, 1, 1), (40, 33, 65)])
def test_ffn(tokens: int, width: int, hidden: int, activation: str):
    params: dict[str, Any] = {"tokens": tokens, "width": width, "hidden": hidden, "activation": activation}
    check(find_workload("ffn").build(TINY, params, seed=5))


@pytest.mark.parametrize(
    ("tokens", "width", "hidden", "heads"), [(5, 16, 24, 2), (20, 16, 40, 1), (33, 32, 100, 4)]
)  # the last one runs its feed-forward block in several parts
def test_encoder_layer(tokens: int, width: int, hidden: int, heads: int):
    rng = np.random.default_rng(tokens)
    x = rng.standard_normal((tokens, width), np.float32)
    check(encoder_layer(TINY, x, random_layer(width, hidden, rng), heads))


@pytest.mark.skipif(find_spec("tokenizers") is None, reason="the real model is not installed")
def test_attention_of_a_text():
    check(find_workload("attention").build(TINY, {"text": "Nine small words make up one short plain sentence."}))


@pytest.mark.parametrize(
    ("engine", "dtype"), [("tensor", "fp32"), ("tensor", "bf16"), ("tensor", "fp16"), ("vector", "bf16")]
)
@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (33, 70), (13, 5)])
def test_transposes(rows: int, columns: int, engine: str, dtype: str):
    params: dict[str, Any] = {"rows": rows, "columns": columns, "engine": engine, "dtype": dtype}
    check(find_workload("transpose").build(TINY, params, seed=6))


@pytest.mark.parametrize("seed", range(20))
def test_random_kernels(seed: int):
    check(random_kernel(TINY, seed))


@pytest.mark.parametrize("seed", range(100, 120))
def test_random_kernels_of_all_statements(seed: int):
    """Every statement of the vector and the scalar engine, beside products, copies and transfers."""
    check(random_kernel(TINY, seed, elements=True))


@pytest.mark.parametrize("seed", range(200, 220))
def test_random_kernels_of_indices(seed: int):
    """Half of the statements gather and scatter by indices that have just come."""
    check(random_kernel(TINY, seed, indices=True))
