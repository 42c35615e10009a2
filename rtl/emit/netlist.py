"""A component as netlists for Yosys, a module each; if asked for, every cell knows its line of Python."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

from rtl.base.placed import Repetition, collecting
from rtl.emit.lanes_apart import lanes_apart
from rtl.emit.quick import quick_netlists
from rtl.emit.uncollected import uncollected
from rtl.emit.verilog import CELLS
from rtl.emit.yosys import to_verilog

__all__ = ["Netlist", "netlist_of"]

_ROOT = CELLS.parents[1]
_SOURCE = re.compile(r'^( *)attribute \\src "([^"]*)"\n', re.M)


@dataclass(frozen=True, slots=True)
class Netlist:
    """`modules`: texts that Yosys reads with read_rtlil, the top's first; `wrappers`: with read_verilog. `cells`: files
    of rtl/cells that it places."""

    modules: tuple[str, ...]
    wrappers: tuple[str, ...]
    cells: tuple[Path, ...]

    @property
    def black_boxes(self) -> list[Path]:
        """Those of `cells` that have ports."""
        return [path for path in self.cells if path.suffix in (".sv", ".v")]


def _own_lines(netlist: str) -> str:
    """With lines of this project's files only, by their place in it: those of libraries say nothing of a unit."""

    def changed(found: re.Match[str]) -> str:
        file, _, line = found[2].rpartition(":")
        path = Path(file)
        ours = path.is_relative_to(_ROOT) and ".venv" not in path.parts
        return f'{found[1]}attribute \\src "{path.relative_to(_ROOT).as_posix()}:{line}"\n' if ours else ""

    return _SOURCE.sub(changed, netlist)


def _converted(component: wiring.Component, name: str, located: bool) -> str:
    with quick_netlists(fields=False):
        text = rtlil.convert(component, name=name, emit_src=located)
    return _own_lines(text) if located else text


def _lanes(name: str, repetition: Repetition, located: bool) -> Iterator[str]:
    """The lane as a netlist, then the module around all lanes as Verilog."""
    lanes: list[str] = []
    texts: list[str] = []

    def convert(component: wiring.Component, module: str) -> str:
        lanes.append(_converted(component, module, located))
        texts.append(to_verilog(lanes[0]))
        return texts[0]

    whole = lanes_apart(name, repetition, convert)
    yield lanes[0]
    yield whole.removesuffix(texts[0])


def netlist_of(component: wiring.Component, name: str, *, located: bool = False) -> Netlist:
    """`component` as the module `name`, and every module placed in it, each once (as rtl.emit.verilog.emit does).

    `located`: cells have an attribute with their line of this repository.
    """
    modules: list[str] = []
    wrappers: list[str] = []
    done: set[str] = set()
    cells: set[str] = set()
    pending = [(name, component)]
    while pending:
        module, top = pending.pop()
        with collecting() as met, uncollected():
            modules.append(_converted(top, module, located))
        cells |= met.sources
        for inner, factory in sorted(met.modules.items()):
            if inner not in done:
                done.add(inner)
                pending.append((inner, factory()))
        for inner, repetition in sorted(met.lanes.items()):
            if inner not in done:
                done.add(inner)
                lane, wrapper = _lanes(inner, repetition, located)
                modules.append(lane)
                wrappers.append(wrapper)
    return Netlist(tuple(modules), tuple(wrappers), tuple(sorted(CELLS / name for name in cells)))
