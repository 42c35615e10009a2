"""Lanes as a loop: one lane's netlist becomes a module that does the same for all of them.

A simulator that is given a hundred instances copies the logic a hundred times before it looks for what they share; a
loop it takes as it is. So a lane is converted once, flattened into word-level cells by Yosys, and written as one
process for each of its clock enables: load a lane's registers, evaluate the cells in order, store what comes next.
A port holds its lanes side by side, lane i at bit i * width; a register is an array of lanes.
"""

import re
from collections.abc import Iterable

from rtl.base.placed import Repetition
from rtl.emit.lane_loop import LaneLoop
from rtl.emit.lane_netlist import LaneNetlist

__all__ = ["lanes_module"]


def _alike(lane: LaneNetlist, shared: Iterable[str]) -> set[str]:
    """Registers that hold the same in every lane: they depend on shared inputs and on each other."""
    alike = {register["name"] for register in lane.registers}
    reads = {register["name"]: lane.cone(register["d"])[1] for register in lane.registers}
    common = set(shared)
    while wrong := {name for name in alike if not reads[name] <= common | alike}:
        alike -= wrong
    return alike


def lanes_module(name: str, repetition: Repetition) -> str:
    """Verilog of the module `name`."""
    lane = LaneNetlist(repetition.factory)
    resets = {port for port in lane.ports if re.fullmatch(r"(.+_)?rst", port)}
    given = repetition.shared | resets
    loop = LaneLoop(lane, repetition.count, frozenset(given | _alike(lane, given)))
    lines = [*_header(name, lane, resets, repetition), *lane.tables()]
    lines += [f"  wire {port} = rst;" for port in sorted(resets - {"rst"})]
    lines += _registers(loop)
    for net, clock in sorted(lane.clocks.items(), key=lambda item: item[1]):
        own = {f"{r['name']}_next": r["d"] for r in lane.registers if r["clock"] == net}
        if own:
            enable = f"if (enable_{clock.removesuffix('_clk')}) " if clock != "clk" else ""
            lines += loop.function(f"{clock}_lanes", own)
            lines += ["  always @(posedge clk)", f"    {enable}begin", f"      {clock}_lanes();"]
            lines += [f"      {after.removesuffix('_next')} <= {after};" for after in own] + ["    end"]
    for port, what in lane.ports.items():
        if what["direction"] == "output":
            times = 1 if port in repetition.shared else repetition.count
            lines += [f"  reg [{times * len(what['bits']) - 1}:0] {port}_now;", f"  assign {port} = {port}_now;"]
            lines += [*loop.function(f"{port}_lanes", {f"{port}_now": what["bits"]}), f"  always_comb {port}_lanes();"]
    return "\n".join([*lines, "endmodule", ""])


def _header(name: str, lane: LaneNetlist, resets: set[str], repetition: Repetition) -> list[str]:
    clocks = set(lane.clocks.values())
    ports = ["  input clk", "  input rst"] if clocks else []
    ports += [f"  input enable_{domain}" for domain in repetition.domains]
    for port, what in lane.ports.items():
        if port not in clocks | resets:
            width = len(what["bits"]) * (1 if port in repetition.shared else repetition.count)
            ports.append(f"  {what['direction']} [{width - 1}:0] {port}")
    return [f"module {name}(", ",\n".join(ports), ");"]


def _registers(loop: LaneLoop) -> list[str]:
    """Declarations: a register that differs between lanes is an array; beside each its next value."""
    declared: list[str] = []
    first: list[str] = []
    each: list[str] = []
    for register in loop.lane.registers:
        name, width, init = register["name"], len(register["d"]), register["init"]
        many = f" [0:{loop.count - 1}]" if name in loop.arrays else ""
        declared += [f"  reg [{width - 1}:0] {of}{many};" for of in (name, f"{name}_next")]
        if name in loop.arrays:
            each.append(f"      {name}[k] = {width}'b{init};")
        else:
            first.append(f"    {name} = {width}'b{init};")
    loops = [f"    for (k = 0; k < {loop.count}; k = k + 1) begin", *each, "    end"] if each else []
    return [*declared, "  integer k;", "  initial begin", *first, *loops, "  end"] if declared else []
