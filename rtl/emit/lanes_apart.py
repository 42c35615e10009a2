"""Lanes one by one: one lane as a module, and around it the module that places it as often as there are lanes.

What `plexus emit` writes for other tools. The loop of rtl/emit/lanes.py is made for a simulator: a synthesis tool would
have to unroll it, process by process, before it sees that the lanes have nothing in common.
"""

import re
from collections.abc import Callable

from amaranth.hdl import DomainRenamer, EnableInserter, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from rtl.base.amaranth_internals import counts_as_used
from rtl.base.placed import Repetition

__all__ = ["lanes_apart"]

_PORT = re.compile(r"^  (input|output) (?:signed )?(?:\[(\d+):0\] )?(\w+) ?;", re.M)


class _Lane(wiring.Component):
    """One lane, all on one clock; `enable_{domain}` lets that through to the registers of a domain."""

    def __init__(self, repetition: Repetition):
        self._lane = repetition.factory()
        counts_as_used(self._lane)
        self._domains = repetition.domains
        enables = {f"enable_{domain}": In(1) for domain in self._domains}
        super().__init__({**enables, **dict(self._lane.signature.members)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        enables = {domain: getattr(self, f"enable_{domain}") for domain in self._domains}
        inside = EnableInserter(enables)(self._lane) if enables else self._lane
        m.submodules.lane = DomainRenamer(dict.fromkeys(self._domains, "sync"))(inside) if enables else inside
        lane = self._lane
        for name, member in lane.signature.members.items():
            ours, theirs = getattr(self, name), getattr(lane, name)
            if member.is_signature:
                connect(m, theirs, flipped(ours))
            else:
                m.d.comb += theirs.eq(ours) if member.flow == In else ours.eq(theirs)
        return m


def lanes_apart(name: str, repetition: Repetition, convert: Callable[[wiring.Component, str], str]) -> str:
    """Verilog of the module `name` and of its lane, which `convert` writes."""
    lane = convert(_Lane(repetition), f"{name}_lane")
    begin = lane.index(f"module {name}_lane(")
    own = _PORT.findall(lane, begin, lane.index("endmodule", begin))
    ports = {port: (way, int(high or 0) + 1) for way, high, port in own}
    common = {"clk", "rst", *repetition.shared, *(f"enable_{domain}" for domain in repetition.domains)}
    declared = {**({"rst": ("input", 1)} if "clk" in ports else {}), **ports}
    for domain in repetition.domains:  # a lane that does not look at it has no such port
        declared.setdefault(f"enable_{domain}", ("input", 1))
    lines = [f"module {name}({', '.join(declared)});"]
    for port, (way, width) in declared.items():
        bits = width * (1 if port in common else repetition.count)
        lines.append(f"  {way} {f'[{bits - 1}:0] ' if bits > 1 else ''}{port};")
    for i in range(repetition.count):
        pins: list[str] = []
        for port, (way, width) in ports.items():
            if port in common:
                pins.append(f".{port}({port if way == 'input' or i == 0 else ''})")
            elif width * repetition.count == 1:
                pins.append(f".{port}({port})")
            else:
                pins.append(f".{port}({port}[{i * width + width - 1}:{i * width}])")
        lines.append(f"  {name}_lane lane{i} ({', '.join(pins)});")
    return "\n".join([*lines, "endmodule", "", lane])
