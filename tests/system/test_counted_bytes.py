"""Bytes of HBM that a core counts, beside those of the descriptors and words that it was given, for every workload."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from firmware.decisions.executed import executed_program
from firmware.image import Image, build_image
from firmware.kernels.minilm_model import encoder_layer
from firmware.program import Program
from firmware.workloads import WORKLOADS, find_workload
from rtl.contract.config import named
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.memmap import ADDRESS, Space
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks.random_layer import random_layer

pytestmark = pytest.mark.sim
TINY = named("tiny")
WORD_BYTES = 128

SIZES: dict[str, tuple[Mapping[str, Any], ...]] = {
    "gemm": ({"m": 16, "k": 32, "n": 24}, {"m": 8, "k": 64, "n": 40, "sparsity": "4:16"}),
    "dma": tuple(
        {"rows": rows, "row_bytes": size, "direction": way}
        for rows, size, way in (
            (9, 33, "both"), (4, 4095, "read"), (5, 4096, "read"), (3, 4097, "write"), (2, 4096, "both"),
            (3, 4096, "sbuf"), (2, 8192, "read"),
        )
    ),
    "attention": (
        {"seq": 20, "head": 8, "heads": 2},
        {"seq": 9, "head": 8, "heads": 4, "kv_heads": 2, "causal": True, "window": 4},
    ),
    "decode": ({"heads": 4, "kv_heads": 2, "head": 8, "past": 40, "live": 20, "dynamic": False},),
    "softmax": ({"rows": 9, "columns": 40},),
    "layernorm": ({"rows": 9, "columns": 40},),
    "ffn": ({"tokens": 5, "width": 12, "hidden": 20},),
    "gated-ffn": ({"tokens": 5, "width": 12, "hidden": 20},),
    "elementwise": ({"rows": 9, "columns": 40},),
    "rope": ({"tokens": 9, "heads": 2, "head": 8}, {"tokens": 1, "heads": 4, "head": 8}),
    "moe": ({"experts": 2, "tokens": 8, "d": 8, "f": 8, "top_k": 1, "mode": "whole"},),
    "gpsimd": ({"program": "topk", "columns": 24}, {"program": "route", "tokens": 9}),
    "embedding": ({"tokens": 21, "vocabulary": 50, "width": 24, "page": 4},),
    "transpose": ({"rows": 9, "columns": 11},),
}  # fmt: skip
OF_THE_MODEL = {"encoder-layer", "minilm", "minilm-projection"}
"""Too large for this core; a layer like theirs stands for them."""


def moved(image: Image) -> tuple[int, int]:
    """Bytes of HBM that the rings' words read and write, from the words alone."""
    memory = image.memory()
    read = written = 0
    for base, count in image.rings:
        for n in range(count):
            at = base + n * WORD_BYTES
            d = DESCRIPTOR.unpack(int.from_bytes(memory[at : at + WORD_BYTES].tobytes(), "little"))
            size = d["row_bytes"] * d["count0"] * d["count1"] * d["count2"]
            read += size * (ADDRESS.unpack(d["source"])["space"] == Space.HBM)
            written += size * (ADDRESS.unpack(d["destination"])["space"] == Space.HBM)
    return read, written


def check(program: Program) -> None:
    image = build_image(program)
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        result = device.run()
        hbm = device.core.hbm_counters()
    assert result.end == "done"
    read, written = moved(image)
    words = sum(count for _, count in (*image.queues.values(), *image.rings))
    assert result.hbm_bytes_read == read + words * WORD_BYTES
    assert result.hbm_bytes_written == written == hbm.written_bytes
    assert result.hbm_bytes_read <= hbm.read_beats * TINY.hbm.port_bytes
    assert (program.hbm_read_bytes, program.hbm_written_bytes) == (read, written)


def test_every_workload_is_here() -> None:
    assert set(SIZES) | OF_THE_MODEL == set(WORKLOADS)


@pytest.mark.parametrize(("workload", "params"), [(name, p) for name, sizes in SIZES.items() for p in sizes], ids=str)
def test_bytes_of_hbm_are_those_of_the_descriptors(workload: str, params: Mapping[str, Any]) -> None:
    check(find_workload(workload).build(TINY, params, 1))


@pytest.mark.parametrize("live", [0, 20, 40])
def test_bytes_of_a_run_that_decides(live: int) -> None:
    """Those of the copies that it makes, and of the words and registers that its queues have fetched, beat by beat."""
    params = {"heads": 4, "kv_heads": 2, "head": 8, "past": 40, "live": live}
    program = find_workload("decode").build(TINY, params, 1)
    image = build_image(program)
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        result = device.run()
        hbm = device.core.hbm_counters()
    made = executed_program(program, result.registers)
    assert result.registers == {0: live} and len(list(made.copies())) < len(list(program.copies())) or live == 40
    read, written = (
        sum(d.bytes for d in made.copies() if side(d).space == Space.HBM)
        for side in (lambda d: d.source, lambda d: d.destination)
    )
    assert result.hbm_bytes_written == written == hbm.written_bytes == made.hbm_written_bytes
    assert read == made.hbm_read_bytes
    fetched = result.hbm_bytes_read - read
    executed = sum(map(len, made.queues.values()))
    assert fetched % TINY.hbm.port_bytes == 0 and fetched > WORD_BYTES * executed
    assert result.hbm_bytes_read <= hbm.read_beats * TINY.hbm.port_bytes


def test_bytes_of_a_layer_of_the_model() -> None:
    rng = np.random.default_rng(5)
    check(encoder_layer(TINY, rng.standard_normal((5, 16), np.float32), random_layer(16, 24, rng), 2))
