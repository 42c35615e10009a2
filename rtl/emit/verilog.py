"""Component to Verilog: reproducible text without paths of the machine."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import verilog
from amaranth.lib import wiring

from rtl.base.placed import collecting
from rtl.emit.lanes import lanes_module
from rtl.emit.quick import quick_netlists
from rtl.emit.registers import merge_registers

__all__ = ["CELLS", "Emitted", "emit"]

CELLS = Path(__file__).resolve().parent.parent / "cells"
"""Hand-written cells: RAM, clock gate, native models."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """Verilog of a top and all that is placed in it."""

    top: str
    text: str
    sources: tuple[Path, ...]  # files of rtl/cells, .sv and .cpp
    hier_blocks: tuple[str, ...]

    def ports(self) -> str:
        """The text of the top module only."""
        start = self.text.index(f"module {self.top}(")
        return self.text[start : self.text.index("endmodule", start)]


def _convert(component: wiring.Component, name: str, *, fields: bool) -> str:
    with quick_netlists(fields=fields):
        text = verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)
    return merge_registers(text)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for cycles of garbage: a conversion makes millions of objects and keeps nearly all."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def emit(component: wiring.Component, name: str, *, fields: bool = False) -> Emitted:
    """Convert `component` and every module placed in it, each once. `fields`: those of structures have names in waves.

    Needs a Yosys that Amaranth finds: sim.toolchain sets it up.
    """
    os.environ.setdefault("AMARANTH_USE_YOSYS", "system")
    texts: list[str] = []
    done: set[str] = set()
    sources: set[str] = set()
    hier_blocks: set[str] = set()
    pending = [(name, component)]
    while pending:
        module, top = pending.pop()
        with collecting() as met, _uncollected():
            texts.append(_convert(top, module, fields=fields))
        sources |= met.sources
        hier_blocks |= met.hier_blocks
        for inner, factory in sorted(met.modules.items()):
            if inner not in done:
                done.add(inner)
                pending.append((inner, factory()))
        for inner, repetition in sorted(met.lanes.items()):
            if inner not in done:
                done.add(inner)
                with _uncollected():
                    texts.append(lanes_module(inner, repetition))
    return Emitted(
        top=name,
        text="\n".join(texts),
        sources=tuple(sorted(CELLS / s for s in sources)),
        hier_blocks=tuple(sorted(hier_blocks)),
    )
