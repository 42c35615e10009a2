"""Figures of the vector and the scalar engine: softmax, attention, rates of exp, a whole model.

Ratios of cycles to a bound of the same program. Vector cycles: tensor cycles over the ratio of the two clocks.
"""

from typing import Any

import numpy as np

from firmware.image import build_image
from firmware.kernel import Kernel
from firmware.numbers import encode
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import Config, named
from rtl.contract.roles import needed
from sim.figures.rows import Bench
from sim.run.compare import compare
from sim.run.device import find_device
from sim.systems.core.verilated import VerilatedDevice, build_core

__all__ = ["ENGINE_GROUPS", "exp_rate", "softmax_window"]


def softmax_window(cfg: Config, params: dict[str, Any], report: dict[str, Any]) -> tuple[float, int]:
    """Vector cycles from the first element to the last result, and their bound: the sum of max(64, elements / rate)."""
    bound = find_workload("softmax").build(cfg, params).vector_table_cycles
    return report["vector_window_cycles"] * cfg.vector.clock_mhz / cfg.tensor.clock_mhz, bound


def _softmax(bench: Bench) -> None:
    cfg = named("full")
    for columns, target in ((512, "<= 1.25"), (2048, "<= 1.10")):
        for dtype in ("bf16", "fp32"):
            params = {"columns": columns, "dtype": dtype}
            report = bench.run("softmax", params)
            window, bound = softmax_window(cfg, params, report)
            bench.add(
                report,
                name=f"softmax-{columns}-{dtype}",
                what=f"softmax [{cfg.partitions}, {columns}] {dtype}, full: vector window / bound",
                value=window / bound,
                unit="x",
                target=target,
                peer=f"{window:,.0f} of {bound:,} vector cycles",
            )


def _attention(bench: Bench) -> None:
    for seq, heads, target in ((2048, 1, ">= 0.80"), (512, 4, ">= 0.80"), (512, 1, "")):
        report = bench.run("attention", {"seq": seq, "heads": heads, "head": 64})
        engines, cycles = report["engines"], report["cycles"]
        used = {name: engines[name]["busy"] for name in ("tensor", "vector", "scalar")}
        shares = ", ".join(f"{name} {100 * count / cycles:.1f} %" for name, count in used.items())
        # A product of fewer columns than the array has keeps its stationary port at work, not its moving one.
        used["tensor"] += engines["tensor"]["stall"]["load"]
        shares += f"; tensor {100 * used['tensor'] / cycles:.1f} % with loads that nothing hides"
        by = max(used, key=lambda name: used[name])
        window = report[f"{by}_window_cycles"]
        inside = f"in the {window:,} cycles of its work {100 * used[by] / max(1, window):.1f} %"
        bench.add(
            report,
            name=f"attention-{seq}-{heads}",
            what=f"attention, seq {seq}, heads {heads}, head 64, full: busy part of the bounding engine",
            value=used[by] / cycles,
            unit="",
            target=target,
            peer=f"{shares}; {by} {inside}; {cycles - window:,} of {cycles:,} cycles are its fill and tail",
        )
        bench.add(
            report,
            name=f"attention-{seq}-{heads}-speed",
            what=f"the same: simulation speed (seq {seq}, heads {heads})",
            value=report["cycles_per_second"],
            unit="cycles/s",
            target=">= 10,000",
        )


def _stream(cfg: Config, engine: str, formats: tuple[str, str], columns: int) -> Program:
    """exp over `columns` elements a lane, by one of the two engines, between two formats in SBUF."""
    lanes, (given, made) = cfg.partitions, formats
    values = np.random.default_rng(columns).standard_normal((lanes, columns), np.float32)
    k = Kernel(cfg, f"{engine} exp")
    x = k.hbm("x", (lanes, columns), given, encode(values, given))
    y = k.hbm("y", (lanes, columns), made)
    source = k.sbuf("source", partitions=lanes, columns=columns, dtype=given)
    result = k.sbuf("result", partitions=lanes, columns=columns, dtype=made)
    k.dma(source[:, :], x[:, :])
    if engine == "vector":
        k.vector.exp(result[:, :], source[:, :])
    else:
        k.scalar.load_table(["exp"])
        k.scalar.activation(result[:, :], source[:, :], "exp")
    k.dma(y[:, :], result[:, :])
    return k.program()


def exp_rate(cfg: Config, engine: str, formats: tuple[str, str]) -> tuple[float, bool]:
    """exp on the vector or scalar engine, from one format to another in SBUF: elements a lane a cycle of the engine,
    from what twice the elements cost more, and whether all bits are right."""
    lengths = cfg.sbuf.partition_bytes // 32, cfg.sbuf.partition_bytes // 16
    slower = cfg.tensor.clock_mhz / {"vector": cfg.vector, "scalar": cfg.scalar}[engine].clock_mhz
    windows, same = [], True
    for columns in lengths:
        image = build_image(_stream(cfg, engine, formats, columns))
        golden = find_device("golden")(cfg)
        golden.load(image)
        with VerilatedDevice(cfg, build_core(needed(cfg)).binary) as device:
            device.load(image)
            result = device.run()
        windows.append(result.window_cycles(engine) / slower)
        same = same and result.end == "done" and compare(result.outputs, golden.run().outputs).match
    return (lengths[1] - lengths[0]) / (windows[1] - windows[0]), same


def _rates(bench: Bench) -> None:
    cfg = named("full")
    for engine, given, made, target in (
        ("vector", "bf16", "bf16", ">= 3.99"),
        ("vector", "bf16", "fp32", ">= 1.99"),
        ("vector", "fp32", "bf16", ">= 1.99"),
        ("vector", "fp32", "fp32", ">= 1.99"),
        ("scalar", "bf16", "bf16", ">= 1.98"),
        ("scalar", "fp32", "fp32", ">= 0.99"),
    ):
        bench.say(f"running exp on the {engine} engine, {given} to {made}")
        rate, same = exp_rate(cfg, engine, (given, made))
        bench.add(
            name=f"rate-{engine}-{given}-{made}",
            what=f"exp on the {engine} engine, {given} to {made}, full: elements a lane a {engine} cycle",
            value=rate,
            unit="",
            target=target,
            match=same,
        )


def _model(bench: Bench) -> None:
    report = bench.run("minilm", {}, config="small")
    bench.add(
        report,
        name="minilm",
        what="minilm, default text, small: cosine to the FP32 embedding",
        value=report["metrics"].get("cosine", 0.0),
        unit="",
        target=">= 0.999",
        peer=f"{report['metrics'].get('cosine', 0.0):.6f}; {report['cycles']:,} cycles",
    )


ENGINE_GROUPS = {"softmax": _softmax, "attention": _attention, "rates": _rates, "minilm": _model}
"""Groups of figures by name."""
