"""Kinds of elements of the array in the kernel language: what it refuses, how the host packs, what a product is."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from firmware.engines.scales import scale_views
from firmware.image import build_image
from firmware.kernel import Kernel, KernelError, TileView
from firmware.kernels.gemm import gemm
from firmware.kernels.gemm_formats import GEMM_FORMATS
from firmware.packing import Packed, pack, quantise_mx, quantise_nvfp4, unpack
from firmware.workloads import find_workload
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Opcode, Queue
from rtl.contract.kinds import Kind
from verif.golden.machine import GoldenMachine

SMALL = load("small", ["tensor.nvfp4=true"])


def operand(k: Kernel, name: str, dtype: str = "e4m3fn_x4", scales: str = "e8m0") -> tuple[TileView, TileView]:
    """A tile of 16 columns on all partitions, and its scales."""
    tile = k.sbuf(name, partitions=32, columns=16, dtype=dtype)
    return tile[:, :], k.sbuf(f"{name}_scales", partitions=32, columns=16, dtype=scales)[:, :]


def refuse(sentence: str, action: Callable[[Kernel], object], cfg: Config = SMALL) -> None:
    with pytest.raises(KernelError) as error:
        action(Kernel(cfg, "test"))
    text = str(error.value)
    assert sentence in text and "\n" not in text


def test_scales_are_refused_in_a_sentence() -> None:
    def short(k: Kernel) -> None:
        x, s = operand(k, "x")
        k.tensor.load(x, s[:, :8])

    def elsewhere(k: Kernel) -> None:
        x, s = operand(k, "x")
        k.tensor.load(x, s[8:])

    def beyond(k: Kernel) -> None:
        x, s = operand(k, "x")
        k.tensor.load(x, s[:12], slot=3)

    refuse("stationary operand x is e4m3fn_x4 and needs scales", lambda k: k.tensor.load(operand(k, "x")[0]))
    refuse("scales x_scales have 8 columns, x has 16; they must be equal", short)
    refuse("scales x_scales are on partitions 8 to 31; those of x in slot 0 need 0 to 3", elsewhere)
    refuse("scales x_scales are on partitions 0 to 11; those of x in slot 3 need 0 to 15", beyond)
    refuse("there are 4 in 32 partitions", lambda k: k.tensor.load(*operand(k, "x"), slot=4))
    refuse("there are 2 in 32 partitions", lambda k: k.tensor.load(*operand(k, "x", scales="e4m3fn"), slot=2))
    refuse("they must be e8m0, or e4m3fn", lambda k: k.tensor.load(*operand(k, "x", scales="uint8")))
    refuse("only _x4 formats have scales", lambda k: k.tensor.load(*operand(k, "x", "bf16")))


def test_operands_that_do_not_go_together_are_refused() -> None:
    def cut(k: Kernel) -> None:
        x, s = operand(k, "x")
        k.tensor.load(x[:12], s)

    def pair(first: str, second: str) -> Callable[[Kernel], None]:
        def build(k: Kernel) -> None:
            sums = k.psum("sums", partitions=16, columns=16)
            for name, dtype in (("x", first), ("y", second)):
                view, scales = operand(k, name, dtype)
                more = (scales,) if dtype.endswith("_x4") else ()
                if name == "x":
                    k.tensor.load(view, *more)
                else:
                    k.tensor.matmul(view, sums[:, :], *more)

        return build

    refuse("takes 12 partitions from 0; 8 partitions share a scale, and a block cannot be cut", cut)
    refuse("x is e4m3_x2, y e4m3fn_x2; the legacy e4m3 and e4m3fn cannot be mixed", pair("e4m3_x2", "e4m3fn_x2"))
    refuse("x is e4m3fn_x4, y bf16; a row takes 4 element(s)", pair("e4m3fn_x4", "bf16"))
    refuse("x is fp32, y tf32; a row takes", pair("fp32", "tf32"))
    refuse("k=48 is no multiple of 32", lambda k: find_workload("gemm").build(SMALL, {"k": 48, "dtype": "mxfp8"}))
    refuse("tensor.nvfp4", lambda k: find_workload("gemm").build(named("small"), {"k": 64, "dtype": "nvfp4"}))
    refuse(
        "with tensor.mx off there is no kind pair",
        lambda k: k.tensor.load(k.sbuf("x", partitions=8, columns=8, dtype="e5m2_x2")[:, :]),
        named("trn2"),
    )
    refuse(
        "the map of E2M1 numbers of x has 8 entries", lambda k: k.tensor.load(*operand(k, "x", "e2m1_x4"), fp4=range(8))
    )


def test_an_odd_k_of_fp8_is_that_with_zeros_behind() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 37), (37, 11)))
    outputs = []
    for zeros in (0, 1):
        program = gemm(SMALL, np.pad(a, ((0, 0), (0, zeros))), np.pad(b, ((0, zeros), (0, 0))), dtype="fp8")
        golden = GoldenMachine(SMALL)
        golden.load(build_image(program))
        outputs.append(golden.run().outputs)
        assert program.macs == 9 * (37 + zeros) * 11
    odd, even = outputs
    assert list(odd) == list(even)
    for name, bits in odd.items():
        assert np.array_equal(bits, even[name])
    rounded = [x.astype(ml_dtypes.float8_e4m3fn).astype(np.float64) for x in (a, b)]
    result = (odd["c"] if "c" in odd else odd["c_t"].T).view(np.float32)
    assert np.allclose(result, rounded[0] @ rounded[1], atol=1e-5)


def test_fp32_takes_four_passes() -> None:
    k = Kernel(SMALL, "test")
    x = k.sbuf("x", partitions=32, columns=16, dtype="fp32")
    sums = k.psum("sums", partitions=16, columns=16)
    k.tensor.load(x[:, :])
    k.tensor.matmul(x[:, :], sums[:, :])
    steps = [(i.opcode, i.kind, i.accumulate) for i in k.program().queues[Queue.TENSOR]]
    load, multiply = Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING
    assert steps == [
        (load, Kind.LOW, False), (multiply, Kind.LOW, False), (multiply, Kind.HIGH, True),
        (load, Kind.HIGH, False), (multiply, Kind.LOW, True), (multiply, Kind.HIGH, True),
    ]  # fmt: skip


def test_scales_of_a_row_lie_where_the_machine_looks() -> None:
    """The formula of semantics.md: Q floor(r / Q) + o + floor((r mod Q) / 8)."""
    full = named("full")
    tile = Kernel(full, "test").sbuf("s", partitions=128, columns=8, dtype="e8m0")[:, :]
    views = scale_views(tile, Kind.QUAD, 128, 2, 0, 128)
    partitions = [p for view in views for p in range(view.start, view.start + view.partitions)]
    assert partitions == [32 * (8 * i // 32) + 8 + 8 * i % 32 // 8 for i in range(16)]


@pytest.mark.parametrize("dtype", ["e4m3fn_x2", "e5m2_x4", "e2m1_x4"])
def test_packing_puts_the_first_k_lowest(dtype: str) -> None:
    count = int(dtype[-1])
    codes = (np.arange(4 * count * 3).reshape(4 * count, 3) % (16 if dtype == "e2m1_x4" else 256)).astype(np.uint8)
    packed = pack(codes, dtype)
    bits = packed.dtype.itemsize * 8 // count
    assert packed.shape == (4, 3) and packed[1, 2] >> bits * (count - 1) == codes[2 * count - 1, 2]
    assert np.array_equal(unpack(packed, dtype), codes)


@pytest.mark.parametrize(
    ("base", "kind", "emax"),
    [
        ("e4m3fn", ml_dtypes.float8_e4m3fn, 8),
        ("e5m2", ml_dtypes.float8_e5m2, 15),
        ("e2m1", ml_dtypes.float4_e2m1fn, 2),
    ],
)
def test_mx_quantisation_is_the_rule_of_ocp(base: str, kind: Any, emax: int) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((96, 7)) * np.exp2(rng.integers(-40, 40, (96, 7)))).astype(np.float32)
    x[:32, 0] = 0
    made = quantise_mx(x, base)
    assert made.scales is not None
    codes = unpack(made.elements, made.dtype)
    for block in range(3):
        for column in range(7):
            part = x[32 * block : 32 * block + 32, column].astype(np.float64)
            largest = np.abs(part).max()
            exponent = int(np.floor(np.log2(largest))) - emax if largest else -127
            top = float(ml_dtypes.finfo(kind).max)
            expected = np.clip(part / 2.0**exponent, -top, top).astype(kind).view(np.uint8)
            assert made.scales[block, column] == exponent + 127
            assert np.array_equal(codes[32 * block : 32 * block + 32, column], expected)


def test_nvfp4_quantisation_is_near() -> None:
    x = np.random.default_rng(2).standard_normal((64, 9)).astype(np.float32)
    made = quantise_nvfp4(x)
    assert made.scales is not None and made.scales.shape == (4, 9)
    assert np.abs(made.values() - x).max() <= np.abs(x).max() / 6 * 1.07


def _golden(cfg: Config, params: dict[str, Any]) -> dict[str, Any]:
    workload = find_workload("gemm")
    program = workload.build(cfg, params, 3)
    machine = GoldenMachine(cfg)
    machine.load(build_image(program))
    result = machine.run()
    assert not result.faults
    return workload.metrics(program, result.outputs)


@pytest.mark.parametrize("dtype", [name for name in GEMM_FORMATS if name not in ("bf16", "fp16")])
def test_products_are_those_of_the_rounded_operands(dtype: str) -> None:
    for cfg, m, k, n in ((load("tiny", ["tensor.nvfp4=true"]), 9, 96, 20), (SMALL, 40, 224, 33)):
        found = _golden(cfg, {"m": m, "k": k, "n": n, "dtype": dtype})
        assert found["cosine"] > 1 - 1e-12 and found["max_abs_error"] < 4e-5


def test_packed_values_are_what_their_codes_say() -> None:
    packed = Packed("e4m3fn_x2", np.array([[0x3840]], np.uint16))
    assert packed.values().tolist() == [[2.0], [1.0]]
