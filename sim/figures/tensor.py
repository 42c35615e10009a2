"""Figures of the tensor engine's formats and row tiles: cycles of its window, from its first beat to its last sum."""

from typing import Any

from sim.figures.rows import Bench
from sim.figures.transpose import transpose_figures

__all__ = ["tensor_figures"]

_LONG = {"m": 512, "k": 4096, "n": 512, "resident": True}
_CUBE = {"m": 512, "k": 512, "n": 512, "resident": True}
_EXPERTS = {"tokens": 2048, "f": 128, "top_k": 1, "route": "even", "scored": False}
"""Four experts of 512 tokens each."""


def _against(bench: Bench, name: str, what: str, target: str, base: dict[str, Any], report: dict[str, Any]) -> None:
    """A row: how many times the tensor window of `base` is that of `report`."""
    slow, fast = base["tensor_window_cycles"], report["tensor_window_cycles"]
    bench.add(
        report,
        name=name,
        what=what,
        value=slow / fast,
        unit="x",
        target=target,
        peer=f"{slow:,} / {fast:,} cycles",
    )


def _formats(bench: Bench) -> None:
    for name, shape, target, size in (
        ("long", _LONG, ">= 3.8", "512 x 4096 x 512"),
        ("cube", _CUBE, "", "512 x 512 x 512"),
    ):
        base = bench.run("gemm", shape)
        for dtype in ("mxfp8", "mxfp4", "w4a8"):
            report = bench.run("gemm", shape | {"dtype": dtype})
            what = f"gemm {size}, full, operands resident: tensor window of bf16 / {dtype}"
            _against(bench, f"{dtype}-{name}", what, target, base, report)
            if dtype == "mxfp8" and name == "cube":
                bench.add(
                    report,
                    name="mxfp8-speed",
                    what="the same: simulation speed",
                    value=report["cycles_per_second"],
                    unit="cycles/s",
                    target=">= 40,000",
                )


def _sparse(bench: Bench) -> None:
    base = bench.run("gemm", _LONG)
    for sparsity, target in (("4:8", ">= 1.9"), ("4:16", ">= 3.7"), ("2:4", ""), ("1:4", "")):
        report = bench.run("gemm", _LONG | {"sparsity": sparsity})
        what = f"gemm 512 x 4096 x 512, full, operands resident: tensor window of dense bf16 / {sparsity}"
        _against(bench, f"sparse-{sparsity}", what, target, base, report)


def _tiles(bench: Bench) -> None:
    for d in (128, 512, 1024, 4096):
        for dtype in ("bf16", "mxfp8"):
            params = _EXPERTS | {"d": d, "dtype": dtype}
            tiles = bench.run("moe", params | {"mode": "tiles"})
            # The operands of one row group have a quarter of SBUF to themselves.
            modes = ("one", "whole") if d <= 1024 else ("whole",)
            for mode in modes:
                report = bench.run("moe", params | {"mode": mode})
                how = "on one row group" if mode == "one" else "on the whole array"
                what = f"moe, 4 experts of 512 tokens, K {d}, {dtype}, full: one after another {how} / four at once"
                target = ">= 3.7" if mode == "one" and dtype == "bf16" and d >= 512 else ""
                _against(bench, f"moe-{dtype}-{d}-{mode}", what, target, report, tiles)


def tensor_figures(bench: Bench) -> None:
    """Transposes beside matmuls, formats against BF16, and row tiles against one after another."""
    transpose_figures(bench)
    _formats(bench)
    _sparse(bench)
    _tiles(bench)
