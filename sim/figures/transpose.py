"""What transposes beside matmuls cost: the same stream of matmuls with and without one for each of them."""

import numpy as np

from firmware.image import build_image
from firmware.kernel import Kernel
from firmware.numbers import encode
from firmware.program import Program
from rtl.contract.config import Config, named
from rtl.contract.roles import needed
from sim.figures.rows import Bench
from sim.run.compare import compare
from sim.run.device import find_device
from sim.systems.core.verilated import VerilatedDevice, build_core

__all__ = ["beside_matmuls", "transpose_cost", "transpose_figures"]

_SETS = 2  # tiles of PSUM of either sort


def beside_matmuls(cfg: Config, columns: int, count: int, turn: bool) -> Program:
    """`count` matmuls of `columns` columns, each with weights of its own, operands resident; with `turn` there is one
    transpose of tensor.rows x tensor.cols random FP32 words for each."""
    tall, wide = cfg.tensor.rows, cfg.tensor.cols
    rng = np.random.default_rng(columns)
    k = Kernel(cfg, "transposes beside matmuls" if turn else "matmuls")
    inputs = {
        "w": encode(rng.standard_normal((tall, wide * _SETS), np.float32), "bf16"),
        "x": encode(rng.standard_normal((tall, columns), np.float32), "bf16"),
        "t": rng.integers(0, 1 << 32, (tall, wide * _SETS), np.uint32),
    }
    tiles = {}
    for name, bits in inputs.items():
        dtype = "fp32" if name == "t" else "bf16"
        tiles[name] = k.sbuf(name, partitions=tall, columns=bits.shape[1], dtype=dtype)
        k.dma(tiles[name][:, :], k.hbm(f"{name}_given", bits.shape, dtype, bits)[:, :])
    bank = cfg.psum.bank_bytes
    sums = [k.psum(f"sums{i}", partitions=wide, columns=columns, align=bank) for i in range(_SETS)]
    turned = [k.psum(f"turned{i}", partitions=wide, columns=tall, align=bank) for i in range(_SETS)]
    k.tensor.barrier()
    for n in range(count):
        part = slice(n % _SETS * wide, (n % _SETS + 1) * wide)
        k.tensor.load(tiles["w"][:, part])
        k.tensor.matmul(tiles["x"][:, :], sums[n % _SETS][:, :])
        if turn:
            k.tensor.transpose(tiles["t"][:, part], turned[n % _SETS][:, :])
    for i in range(_SETS):
        for name, tile in (("sums", sums[i]), ("turned", turned[i]))[: 1 + turn]:
            out = k.sbuf(f"{name}_out{i}", partitions=wide, columns=tile.columns, dtype="fp32")
            k.vector.copy(out[:, :], tile[:, :])
            k.dma(k.hbm(f"{name}{i}_made", (wide, tile.columns), "fp32")[:, :], out[:, :])
    return k.program(macs=count * tall * wide * columns)


def transpose_cost(cfg: Config, columns: int, count: int) -> tuple[int, int, bool]:
    """Cycles of the tensor engine's window, from its first beat to its last sum, without and with transposes; and
    whether all bits are right."""
    windows, same = [], True
    for turn in (False, True):
        image = build_image(beside_matmuls(cfg, columns, count, turn))
        golden = find_device("golden")(cfg)
        golden.load(image)
        with VerilatedDevice(cfg, build_core(needed(cfg)).binary) as device:
            device.load(image)
            result = device.run()
        windows.append(result.window_cycles("tensor"))
        same = same and result.end == "done" and compare(result.outputs, golden.run().outputs).match
    return windows[0], windows[1], same


def transpose_figures(bench: Bench) -> None:
    """At full, matmuls of 512 columns and transposes of 128 x 128."""
    cfg, columns, count = named("full"), 512, 16
    bench.say(f"running {count} matmuls of {columns} columns with and without transposes")
    without, beside, same = transpose_cost(cfg, columns, count)
    bench.add(
        name="transposes",
        what=f"{count} matmuls of {columns} columns, full: window without / with a 128 x 128 transpose each",
        value=without / beside,
        unit="",
        target=">= 0.9",
        peer=f"{without:,} / {beside:,} cycles",
        match=same,
    )
