"""Component to Verilog: reproducible text without paths of the machine."""

import ctypes
import gc
import os
from dataclasses import dataclass, field
from functools import partial
from inspect import getsourcefile
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

from rtl.base.amaranth_internals import counts_as_used
from rtl.base.placed import Repetition, collecting
from rtl.emit.constants import run_constants
from rtl.emit.lane_vectors import AT_ONCE
from rtl.emit.lanes import lanes_in_cpp, lanes_module
from rtl.emit.lanes_apart import lanes_apart
from rtl.emit.located import Place, Places, take_places
from rtl.emit.plant_top import PlantTop
from rtl.emit.quick import quick_netlists
from rtl.emit.registers import merge_registers
from rtl.emit.uncollected import uncollected
from rtl.emit.yosys import to_verilog

__all__ = ["CELLS", "Emitted", "emit"]

CELLS = Path(__file__).resolve().parent.parent / "cells"
"""Hand-written cells: RAM, clock gate, native models."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """Verilog of a top and all that is placed in it."""

    top: str
    own_text: str  # the top and what only it holds
    placed_text: str  # every module that was placed, once
    sources: tuple[Path, ...]  # files of rtl/cells, .sv and .cpp
    hier_blocks: tuple[str, ...]
    faults: tuple[str, ...] = ()  # fault n - 1 is planted while the input `plant` of the top is n
    generated: dict[str, str] = field(default_factory=dict)  # C++ by the name of its file
    places: Places = field(default_factory=dict)  # where names come from, if that was asked for

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.own_text}\n{self.placed_text}"

    def blocks_only(self) -> str:
        """What was placed below a top that holds each of `hier_blocks` once: enough to compile these."""
        instances = "".join(f"  {name} {name} ();\n" for name in self.hier_blocks)
        return f"module {self.top}();\n{instances}endmodule\n{self.placed_text}"

    def ports(self) -> str:
        """The text of the top module only."""
        start = self.own_text.index(f"module {self.top}(")
        return self.own_text[start : self.own_text.index("endmodule", start)]


_LARGE_BYTES = 9_000_000
"""Of a netlist as text: above, what it was made from (0.1 GiB a million bytes) is worth a search of seconds."""


def _give_back() -> None:
    """Memory of a netlist to the system, before Yosys and compilers need it: of 3.0 GiB for the largest core, 2.9."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)


def _convert(component: wiring.Component, name: str, *, fields: bool, loops: bool, places: Places | None = None) -> str:
    """`places`: where to note the places of names."""
    with quick_netlists(fields=fields):
        netlist = rtlil.convert(component, name=name, emit_src=places is not None)
    if len(netlist) > _LARGE_BYTES:
        _give_back()
    text = to_verilog(netlist, places=places is not None)
    if places is not None:
        text, met = take_places(text)
        places |= met
    return run_constants(merge_registers(text), zeros=not loops)


def _place_of(lane: wiring.Component) -> Place:
    """Of a lane, which is flattened: where its class is."""
    counts_as_used(lane)  # it is only looked at
    path = Path(getsourcefile(type(lane)) or "")
    return Place(f"{path.relative_to(CELLS.parents[1]).as_posix()}:1" if path.is_relative_to(CELLS.parents[1]) else "")


def _may_be_cpp(repetition: Repetition) -> bool:
    return repetition.form == "either" and repetition.count % AT_ONCE == 0


def emit(
    component: wiring.Component,
    name: str,
    *,
    fields: bool = False,
    loops: bool = True,
    runs_long: bool = False,
    planted: bool = False,
    located: bool = False,
) -> Emitted:
    """Convert `component` and every module placed in it, each once. `fields`: those of structures have names in waves.
    `loops`: repeated lanes as a loop, for a simulator; else one by one, for other tools. `runs_long`: those
    that can be in C++ are. `planted`: with the faults of
    its units and an input `plant` that chooses one (rtl/emit/plant_top.py). `located`: note the places of names; the
    text is the same.

    Needs a Yosys that Amaranth finds: sim.toolchain sets it up.
    """
    os.environ.setdefault("AMARANTH_USE_YOSYS", "system")
    places: Places = {}
    plain = partial(_convert, fields=fields, loops=loops, places=places if located else None)
    texts: list[str] = []
    done: set[str] = set()
    sources: set[str] = set()
    hier_blocks: set[str] = set()
    generated: dict[str, str] = {}
    whole = PlantTop(component) if planted else component
    pending = [(name, whole)]
    while pending:
        module, top = pending.pop()
        with collecting() as met, uncollected():
            texts.append(plain(top, module))
        sources |= met.sources
        hier_blocks |= met.hier_blocks
        for inner, factory in sorted(met.modules.items()):
            if inner not in done:
                done.add(inner)
                pending.append((inner, factory()))
        for inner, repetition in sorted(met.lanes.items()):
            if inner not in done:
                done.add(inner)
                if located:
                    places[inner] = _place_of(repetition.factory())
                with uncollected():
                    if not loops:
                        texts.append(lanes_apart(inner, repetition, plain))
                    elif repetition.form == "cpp" or (runs_long and _may_be_cpp(repetition)):
                        text, generated[f"{inner}.cpp"] = lanes_in_cpp(inner, repetition)
                        texts.append(text)
                    else:
                        texts.append(lanes_module(inner, repetition))
                hier_blocks |= set() if loops else {f"{inner}_lane"}  # to be looked at once
    return Emitted(
        top=name,
        own_text=texts[0],
        placed_text="\n".join(texts[1:]),
        sources=tuple(sorted(CELLS / s for s in sources)),
        hier_blocks=tuple(sorted(hier_blocks)),
        faults=whole.names if isinstance(whole, PlantTop) else (),
        generated=generated,
        places=places,
    )
