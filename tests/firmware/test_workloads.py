"""Workloads: parameters and their sentences, what DMA moves, the projections of a real model."""

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import KernelError
from firmware.kernels import minilm, minilm_reference
from firmware.kernels.minilm_model import encoder_layer
from firmware.kernels.transpose import ENGINES, TRANSPOSED_FORMATS
from firmware.program import Program
from firmware.workloads import WORKLOADS, find_workload
from rtl.contract.config import load, named
from rtl.contract.memmap import Space
from verif.checks.random_layer import random_layer
from verif.golden.machine import GoldenMachine, RunResult

TINY = named("tiny")


def run(program: Program, seed: int | None = None) -> RunResult:
    machine = GoldenMachine(program.config, seed)
    machine.load(build_image(program))
    result = machine.run()
    assert result.faults == []
    return result


@pytest.mark.parametrize(
    ("workload", "setting", "sentence"),
    [
        ("gemm", "m=0", "m must be at least 1, not 0"),
        ("gemm", "k=-3", "k must be at least 1, not -3"),
        ("gemm", "n=many", "n must be a whole number, not 'many'"),
        ("gemm", "n=1048577", "n must be at most 1048576, not 1048577"),
        (
            "gemm",
            "dtype=int8",
            "dtype must be one of bf16, fp16, tf32, fp32, fp8, mxfp8, mxfp4, w4a8, nvfp4, not 'int8'",
        ),
        ("gemm", "out=int8", "out must be one of fp32, bf16, fp16, not 'int8'"),
        ("gemm", "resident=maybe", "resident must be true or false, not 'maybe'"),
        (
            "gemm",
            "depth=3",
            (
                "workload gemm has no parameter 'depth'; it has m, k, n, dtype, out, sparsity, resident, rounding, "
                "loop, seed"
            ),
        ),
        ("gemm", "m", "a parameter is written name=value, not 'm'"),
        ("dma", "direction=up", "direction must be one of read, write, both, sbuf, inside, not 'up'"),
        ("dma", "row_bytes=0", "row_bytes must be at least 1, not 0"),
        ("dma", "rows=0", "rows must be at least 1, not 0"),
        ("attention", "causal=maybe", "causal must be true or false, not 'maybe'"),
        ("layernorm", "dtype=int8", "dtype must be one of bf16, fp32, fp16, not 'int8'"),
        ("transpose", "engine=dma", "engine must be one of tensor, vector, identity, not 'dma'"),
        ("ffn", "activation=tanh", "activation must be one of gelu, gelu_tanh, silu, relu, not 'tanh'"),
        ("ffn", "hidden=0", "hidden must be at least 1, not 0"),
        ("layernorm", "columns=0", "columns must be at least 1, not 0"),
    ],
)
def test_wrong_parameters(workload: str, setting: str, sentence: str):
    with pytest.raises(KernelError) as error:
        find_workload(workload).parse([setting])
    assert str(error.value) == sentence


def test_unknown_workload():
    with pytest.raises(KernelError) as error:
        find_workload("gem")
    assert str(error.value) == f"there is no workload 'gem'; there are {', '.join(WORKLOADS)}"


def test_parameters_from_code_are_checked_too():
    with pytest.raises(KernelError, match="m must be a whole number, not True"):
        WORKLOADS["gemm"].build(TINY, {"m": True})
    assert WORKLOADS["gemm"].parse(["m=0x10"])["m"] == 16


def test_a_product_that_hbm_does_not_hold():
    with pytest.raises(KernelError, match="a product of m=1048576, k=8, n=8 needs .* hbm.capacity_mib = 16 MiB"):
        WORKLOADS["gemm"].build(TINY, {"m": 1 << 20, "k": 8, "n": 8})


def test_seeds():
    gemm = WORKLOADS["gemm"]

    def values(params: dict[str, object], seed: int) -> bytes:
        data = gemm.build(TINY, {"m": 4, "k": 4, "n": 4, **params}, seed).tensors["b"].data
        assert data is not None
        return data.tobytes()

    assert values({}, 1) == values({}, 1) == values({"seed": 1}, 7)
    assert values({}, 1) != values({}, 2)


def test_gemm_metrics():
    gemm = WORKLOADS["gemm"]
    program = gemm.build(TINY, gemm.parse(["m=5", "k=20", "n=70", "dtype=fp16"]))
    found = gemm.metrics(program, run(program).outputs)
    assert found["max_abs_error"] < 1e-5 and found["cosine"] > 0.999999
    assert program.params["n"] == 70 and program.params["out"] == "fp32"


@pytest.mark.parametrize(("rows", "row_bytes"), [(None, 512), (64, 64), (61, 33), (3, 700), (1000, 8), (1, 1)])
@pytest.mark.parametrize("direction", ["read", "both"])
def test_dma_reads(rows: int | None, row_bytes: int, direction: str):
    dma = WORKLOADS["dma"]
    program = dma.build(TINY, {"rows": rows, "row_bytes": row_bytes, "direction": direction}, 3)
    result = run(program, seed=1)
    source = program.tensors["rows"].data
    assert source is not None
    p = TINY.partitions
    loads = [d for ring in program.rings for d in ring if d.source.tensor == "rows"]
    assert sum(d.bytes for d in loads) == source.size
    # Every row that comes back is the row of the source that lies at its place.
    samples = result.outputs["read_back"]
    back = [d for ring in program.rings for d in ring if d.destination.tensor == "read_back"]
    assert back
    for block, descriptor in enumerate(back):
        load = loads[block * 4]
        first = load.source.offset // row_bytes
        count = descriptor.bytes // row_bytes
        assert np.array_equal(samples[block * p : block * p + count], source[first : first + count])


@pytest.mark.parametrize(("rows", "row_bytes"), [(None, 512), (61, 33), (3, 700)])
@pytest.mark.parametrize("direction", ["write", "both"])
def test_dma_writes(rows: int | None, row_bytes: int, direction: str):
    program = WORKLOADS["dma"].build(TINY, {"rows": rows, "row_bytes": row_bytes, "direction": direction}, 3)
    written = run(program, seed=2).outputs["written"]
    pattern = program.tensors["pattern_rows"].data
    assert pattern is not None
    assert np.array_equal(written, np.resize(pattern, written.shape))


def test_dma_inside_sbuf():
    program = WORKLOADS["dma"].build(TINY, {"direction": "sbuf", "row_bytes": 100}, 3)
    back = run(program, seed=2).outputs["read_back"]
    pattern = program.tensors["pattern_rows"].data
    assert pattern is not None
    swapped = np.roll(pattern, 4, axis=0)
    assert np.array_equal(back, np.tile(swapped, (len(back) // len(swapped), 1)))
    inside = [d for ring in program.rings for d in ring if d.source.space == d.destination.space == Space.SBUF]
    assert sum(d.bytes for d in inside) > 1000


def test_dma_at_full_size_is_long_and_uses_several_rings():
    program = WORKLOADS["dma"].build(named("full"), {}, 0)
    assert program.hbm_read_bytes == 8 << 20
    assert sum(bool(ring) for ring in program.rings) >= 3
    assert {d.row_bytes for ring in program.rings for d in ring} == {512}


@pytest.mark.parametrize(("direction", "limit", "what"), [
    ("read", 8192, "a partition"),
    ("write", 8192, "a partition"),
    ("both", 4096, "half a partition"),
    ("sbuf", 4096, "half a partition"),
])  # fmt: skip
def test_a_row_that_no_partition_holds(direction: str, limit: int, what: str):
    dma = WORKLOADS["dma"]
    dma.build(TINY, {"rows": 8, "row_bytes": limit, "direction": direction})
    for row_bytes in (limit + 1, 9000, 1 << 18):
        with pytest.raises(KernelError) as error:
            dma.build(TINY, {"rows": 8, "row_bytes": row_bytes, "direction": direction})
        assert str(error.value) == (
            f"row_bytes must be at most {limit}, {what} of SBUF, with direction={direction}, not {row_bytes}"
        )


class NoRandom:
    """Nothing may be drawn before the sizes are known to be right."""

    def __init__(self, seed: int):
        raise AssertionError("data were drawn")


@pytest.mark.parametrize(
    ("workload", "config", "params", "says"),
    [
        ("dma", "small", {"rows": 1 << 20, "row_bytes": 32768}, "of HBM, more than hbm.capacity_mib = 1024 MiB"),
        ("dma", "small", {"rows": 1 << 16, "row_bytes": 9000, "direction": "both"}, "1179648000 bytes of HBM"),
        ("dma", "full", {"rows": 1 << 16, "row_bytes": 65536}, "of host memory for its data; at most 1073741824"),
        ("gemm", "full", {"m": 1 << 16, "k": 1 << 16, "n": 1}, "the host holds at most 134217728"),
        ("gemm", "full", {"m": 1 << 16, "k": 1, "n": 1 << 15}, "the host holds at most 134217728"),
    ],
)
def test_sizes_are_refused_before_anything_is_drawn(
    workload: str, config: str, params: dict[str, object], says: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(np.random, "default_rng", NoRandom)
    with pytest.raises(KernelError) as error:
        WORKLOADS[workload].build(named(config), params)
    assert says in str(error.value)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("config", "seq", "head", "heads"),
    [
        ("tiny", 1, 1, 1),
        ("tiny", 13, 5, 3),
        ("tiny", 150, 12, 2),  # several blocks of keys
        ("tiny", 33, 20, 2),  # several tiles of the head axis
        ("tiny", 64, 64, 1),
        ("small", 600, 64, 1),  # more keys than a block
    ],
)
def test_attention(config: str, seq: int, head: int, heads: int, causal: bool):
    """BF16 operands and probabilities, FP32 sums: an error of 2^-8 of the values at most."""
    attention = WORKLOADS["attention"]
    params = {"seq": seq, "head": head, "heads": heads, "causal": causal}
    program = attention.build(named(config), params, seed=seq)
    found = attention.metrics(program, run(program, seed=1).outputs)
    assert found["max_abs_error"] < 0.02 and found["cosine"] > 0.99999


def test_what_makes_attention_random():
    attention = WORKLOADS["attention"]
    assert attention.parse([])["text"] == attention.parse(["heads=3"])["text"] == minilm.LONG_TEXT
    random = {"text": None, "heads": 1, "seq": 128, "head": 32, "causal": False, "seed": None}
    random |= {"queries": None, "kv_heads": None, "values": None, "window": None, "sinks": False}
    assert attention.parse(["causal=false"]) == random
    assert attention.parse(["seq=9", "heads=2"]) == random | {"seq": 9, "heads": 2}
    assert attention.parse(["seed=0"]) == random | {"seed": 0}
    for name in ("seq", "head", "seed"):
        with pytest.raises(KernelError) as error:
            attention.parse(["text=hello", f"{name}=5"])
        assert str(error.value) == (
            f"text and {name} exclude each other: a text has a model's queries, keys and values, "
            "seq, head, causal, queries, kv_heads, values, window, sinks, seed belong to random ones"
        )


def test_causal_attention_skips_what_it_does_not_see():
    attention = WORKLOADS["attention"]
    masked, whole = (attention.build(TINY, {"seq": 256, "head": 8, "causal": causal}) for causal in (True, False))
    assert masked.macs == 2 * 8 * 256 * 257 // 2
    assert masked.tensor_columns < 0.6 * whole.tensor_columns


NORM_LIMITS = {"fp32": 2e-5, "fp16": 4e-3, "bf16": 3e-2}  # results up to 8; half a last place of the format


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize(
    ("config", "rows", "columns", "dtype"),
    [
        ("tiny", None, 64, "bf16"),
        ("tiny", 19, 33, "fp32"),  # three tiles of rows, the last one short
        ("tiny", 9, 50, "fp16"),
        ("tiny", 1, 1, "bf16"),
        ("tiny", 8, 512, "fp32"),
        ("small", 33, 1300, "fp32"),  # three pieces of statistics
        ("small", 3, 513, "bf16"),  # the last of one element
    ],
)
def test_norms(config: str, rows: int | None, columns: int, dtype: str, rms: bool):
    norm = WORKLOADS["layernorm"]
    program = norm.build(named(config), {"rows": rows, "columns": columns, "dtype": dtype, "rms": rms}, seed=columns)
    found = norm.metrics(program, run(program, seed=1).outputs)
    assert found["max_abs_error"] < NORM_LIMITS[dtype] and found["cosine"] > 0.99999


@pytest.mark.parametrize(
    ("engine", "dtype"),
    [("identity", "bf16"), *((engine, dtype) for engine in ("tensor", "vector") for dtype in TRANSPOSED_FORMATS)],
)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 8), (13, 5), (33, 70), (16, 64), (7, 24)])
def test_transposes(rows: int, columns: int, engine: str, dtype: str):
    workload = WORKLOADS["transpose"]
    program = workload.build(TINY, {"rows": rows, "columns": columns, "engine": engine, "dtype": dtype}, seed=rows)
    assert workload.metrics(program, run(program, seed=1).outputs) == {"wrong_elements": 0}


def test_the_default_transpose_at_full():
    for engine in ENGINES:
        program = WORKLOADS["transpose"].build(named("full"), {"rows": 200, "columns": 300, "engine": engine}, seed=1)
        assert program.metrics(run(program).outputs) == {"wrong_elements": 0}


def test_a_small_table_is_enough_for_one_function():
    """1,024 rows hold the table of any function that a kernel loads, though not all at once."""
    cfg = load("tiny", ["scalar.table_rows=1024"])
    for workload, params in (("layernorm", {"columns": 32}), ("ffn", {"tokens": 8, "width": 8, "hidden": 16})):
        program = WORKLOADS[workload].build(cfg, params)
        assert program.metrics(run(program).outputs)["cosine"] > 0.999


def test_norms_that_cannot_be():
    with pytest.raises(KernelError) as error:
        WORKLOADS["layernorm"].build(TINY, {"columns": 4096})
    assert str(error.value) == (
        "layernorm of columns=4096 does not fit the memories of tiny: "
        "tile gain needs 16384 bytes of each SBUF partition, but only 8192 of 8192 are free"
    )
    with pytest.raises(KernelError, match="^layernorm of rows=1048576, columns=512 has 536870912 values; the host"):
        WORKLOADS["layernorm"].build(TINY, {"rows": 1 << 20})


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu", "relu"])
@pytest.mark.parametrize(("tokens", "width", "hidden"), [(5, 12, 20), (1, 1, 1), (40, 33, 65)])
def test_ffn(tokens: int, width: int, hidden: int, activation: str):
    """Results up to about 4; the inner values are BF16."""
    ffn = WORKLOADS["ffn"]
    program = ffn.build(
        TINY, {"tokens": tokens, "width": width, "hidden": hidden, "activation": activation}, seed=tokens
    )
    found = ffn.metrics(program, run(program, seed=1).outputs)
    assert found["max_abs_error"] < 0.02 and found["cosine"] > 0.9999


def test_ffn_with_more_tokens_than_sbuf_holds():
    ffn = WORKLOADS["ffn"]
    program = ffn.build(TINY, {"tokens": 300, "width": 40, "hidden": 150, "activation": "relu"}, seed=1)
    assert "tokens at a time" in program.notes[-1]
    assert ffn.metrics(program, run(program).outputs)["cosine"] > 0.9999
    default = ffn.build(named("small"))
    assert default.tensor_columns == default.macs // 32**2  # no column but for a product
    with pytest.raises(KernelError, match="^ffn keeps 513 tiles of at least 8 tokens in SBUF, which leaves"):
        ffn.build(TINY, {"tokens": 10, "width": 8, "hidden": 4096})


def have_model() -> bool:
    try:
        importlib.metadata.distribution(minilm.PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


needs_model = pytest.mark.skipif(not have_model(), reason=f"{minilm.PACKAGE} is not installed")


@needs_model
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_projections(config: str):
    workload = WORKLOADS["minilm-projection"]
    program = workload.build(named(config), {"text": "Nine small words make up one short plain sentence."})
    found = workload.metrics(program, run(program, seed=0 if config == "small" else None).outputs)
    assert found["tokens"] == 12
    assert program.macs == 3 * 384 * 384 * 12
    assert found["cosine"] > 0.99999 and found["max_abs_error"] < 0.05


@needs_model
@pytest.mark.parametrize(("config", "heads"), [("tiny", 1), ("small", 1), ("small", 12)])
def test_attention_of_a_text(config: str, heads: int):
    """At tiny x^T comes in pieces; BF16 operands against FP32 of uncast ones."""
    attention = WORKLOADS["attention"]
    program = attention.build(named(config), {"heads": heads})
    assert program.params["text"] == minilm.LONG_TEXT and program.params["seq"] is None
    found = attention.metrics(program, run(program, seed=1).outputs)
    assert found["tokens"] >= 128
    assert found["cosine"] > 0.99999 and found["mean_abs_error"] < 1e-3


@needs_model
@pytest.mark.parametrize("text", ["Yes.", "Nine small words make up one short plain sentence."])
def test_attention_of_a_short_text(text: str):
    attention = WORKLOADS["attention"]
    program = attention.build(TINY, attention.parse([f"text={text}"]))
    assert attention.metrics(program, run(program).outputs)["cosine"] > 0.9999


@needs_model
@pytest.mark.parametrize("text", [minilm.DEFAULT_TEXT, minilm.LONG_TEXT])
def test_encoder_layer_of_a_text(text: str):
    """Results up to about 3; BF16 weights against FP32."""
    layer = WORKLOADS["encoder-layer"]
    program = layer.build(named("small"), {"text": text})
    found = layer.metrics(program, run(program, seed=1).outputs)
    assert found["cosine"] > 0.99999 and found["max_abs_error"] < 0.03


@needs_model
def test_the_whole_model():
    model = WORKLOADS["minilm"]
    program = model.build(named("small"), {"text": "A short sentence goes in, and its embedding comes out."})
    found = model.metrics(program, run(program, seed=1).outputs)
    assert found["cosine"] > 0.9999 and abs(found["length"] - 1) < 1e-5


@needs_model
def test_the_reference_knows_what_is_alike():
    tensors = minilm.model_tensors()
    first, second, other = (
        minilm_reference.reference_embedding(tensors, minilm.tokenize(text))
        for text in ("A man plays a guitar.", "Someone makes music on a guitar.", "The bank lowered its rates.")
    )
    assert first @ second > 0.6 and first @ other < 0.2


@needs_model
@pytest.mark.parametrize(
    ("workload", "what"),
    [("encoder-layer", "tile .* needs .* bytes of each SBUF"), ("minilm", "program minilm needs .* bytes of HBM")],
)
def test_a_model_that_the_memories_do_not_hold(workload: str, what: str):
    with pytest.raises(KernelError, match=f"^.* of this text does not fit the memories of tiny: {what}"):
        WORKLOADS[workload].build(TINY)


@pytest.mark.parametrize(
    ("tokens", "width", "hidden", "heads"),
    [(5, 16, 24, 2), (20, 16, 40, 1), (33, 32, 100, 4), (1, 8, 8, 1)],  # the third one in several parts
)
def test_encoder_layers_of_random_weights(tokens: int, width: int, hidden: int, heads: int):
    rng = np.random.default_rng(tokens)
    x = rng.standard_normal((tokens, width), np.float32)
    program = encoder_layer(TINY, x, random_layer(width, hidden, rng), heads)
    found = program.metrics(run(program, seed=1).outputs)
    assert found["cosine"] > 0.9999 and found["max_abs_error"] < 0.05


@needs_model
def test_embeddings_are_normalised():
    tensors = minilm.read_safetensors(minilm._file("model.safetensors"))
    x = minilm.embed(minilm.tokenize("hello"), tensors)
    assert x.shape == (3, 384) and x.dtype == np.float32
    scale = tensors["embeddings.LayerNorm.weight"]
    plain = (x - tensors["embeddings.LayerNorm.bias"]) / scale
    assert np.allclose(plain.mean(axis=1), 0, atol=1e-4) and np.allclose(plain.std(axis=1), 1, atol=1e-3)


@needs_model
def test_texts_that_cannot_be():
    with pytest.raises(KernelError, match="^text must have at least one word, not ' '$"):
        WORKLOADS["minilm-projection"].build(TINY, {"text": " "})
    with pytest.raises(KernelError, match="the model takes at most 512$"):
        WORKLOADS["minilm-projection"].build(TINY, {"text": "word " * 600})
    with pytest.raises(KernelError, match="^text must have at least one word, not ''$"):
        WORKLOADS["attention"].build(TINY, {"text": ""})
    with pytest.raises(KernelError, match="^heads must be from 1 to 12, those of a layer of the model, not 13$"):
        WORKLOADS["attention"].build(TINY, {"heads": 13})


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(minilm, "PACKAGE", "no-such-package-here")
    for workload in ("minilm-projection", "attention", "encoder-layer", "minilm"):
        with pytest.raises(KernelError) as error:
            WORKLOADS[workload].build(TINY)
        assert str(error.value) == (
            "the package no-such-package-here with the weights is not installed; the workload gemm needs no download"
        )


def test_safetensors(tmp_path: Path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + values.tobytes())
    assert np.array_equal(minilm.read_safetensors(path)["w"], values)
    path.write_bytes(b"short")
    with pytest.raises(KernelError, match="model.safetensors is not a readable safetensors file"):
        minilm.read_safetensors(path)
