"""Figures of the builds of benches' models: processor time by stage, everything that is kept being there."""

from typing import Any

from rtl.contract.config import named
from sim.build.model import build
from sim.figures.rows import Bench

__all__ = ["model_figures"]

_UNITS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("unpack", "tiny", {}),
    ("fp32_add", "tiny", {}),
    ("alu", "tiny", {}),
    ("check", "tiny", {"queue": 0}),
    ("psum", "tiny", {"form": "native"}),
)
_FIRST = ("fifo", "tiny", {"shape": 8, "depth": 2})
"""Built before, so that the runtime and its precompiled header are there."""


def model_figures(bench: Bench) -> None:
    """A row a unit, with its planted faults."""
    for top, config, options in (_FIRST, *_UNITS):
        bench.say(f"building {top} {config}")
        built = build(top, named(config), options=options, planted=True)
        if (top, config, options) == _FIRST:
            continue
        stages = built.cpu_seconds
        kilobytes = (built.folder / "top.v").stat().st_size / 1e3
        bench.add(
            name=f"model-{top}",
            what=f"bench's model of {top} at {config}, {kilobytes:,.0f} kB of Verilog",
            value=sum(stages.values()),
            unit="s",
            target="",
            peer="processor time: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in stages.items()),
        )
