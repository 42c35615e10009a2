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
from rtl.emit.lane_vectors import LaneVectors

__all__ = ["lanes_in_cpp", "lanes_module"]


def _alike(lane: LaneNetlist, shared: Iterable[str]) -> set[str]:
    """Registers that hold the same in every lane: they depend on shared inputs and on each other."""
    alike = {register["name"] for register in lane.registers}
    reads = {register["name"]: lane.cone(register["d"])[1] for register in lane.registers}
    common = set(shared)
    while wrong := {name for name in alike if not reads[name] <= common | alike}:
        alike -= wrong
    return alike


def _loop(repetition: Repetition) -> tuple[LaneLoop, set[str]]:
    """The lanes, and the resets among a lane's ports."""
    lane = LaneNetlist(repetition.factory)
    resets = {port for port in lane.ports if re.fullmatch(r"(.+_)?rst", port)}
    given = repetition.shared | resets
    return LaneLoop(lane, repetition.count, frozenset(given | _alike(lane, given))), resets


def lanes_module(name: str, repetition: Repetition) -> str:
    """Verilog of the module `name`."""
    loop, resets = _loop(repetition)
    lane = loop.lane
    lines = [*_header(name, lane, resets, repetition), *lane.tables()]
    lines += [f"  wire {port} = rst;" for port in sorted(resets - {"rst"})]
    lines += _registers(loop)
    for net, clock in sorted(lane.clocks.items(), key=lambda item: item[1]):
        own = {f"{r['name']}_next": r["d"] for r in lane.registers if r["clock"] == net}
        if own:
            enable = _enable(clock, "if ({}) ")
            lines += loop.function(f"{clock}_lanes", own)
            lines += ["  always @(posedge clk)", f"    {enable}begin", f"      {clock}_lanes();"]
            lines += [f"      {after.removesuffix('_next')} <= {after};" for after in own] + ["    end"]
    for port, what in lane.ports.items():
        if what["direction"] == "output":
            times = 1 if port in repetition.shared else repetition.count
            lines += [f"  reg [{times * len(what['bits']) - 1}:0] {port}_now;", f"  assign {port} = {port}_now;"]
            lines += [*loop.function(f"{port}_lanes", {f"{port}_now": what["bits"]}), f"  always_comb {port}_lanes();"]
    return "\n".join([*lines, "endmodule", ""])


def lanes_in_cpp(name: str, repetition: Repetition) -> tuple[str, str]:
    """Verilog of the module `name` whose lanes are functions in C++, and these.

    Errors: ValueError for lanes that cannot be so: without registers, no multiple of 16, with a cell of another kind.
    """
    loop, resets = _loop(repetition)
    lane = loop.lane
    clocks = sorted({lane.clocks[register["clock"]] for register in lane.registers})
    if not clocks:
        raise ValueError("lanes without registers are functions already")
    ports = lane.ports.items()
    read = {port: len(what["bits"]) for port, what in ports if what["direction"] == "input"}
    vectors = LaneVectors(name, loop, {port: width for port, width in read.items() if port not in clocks})
    edge: list[str] = []
    for clock in clocks:
        own = {r["name"]: r["d"] for r in lane.registers if lane.clocks[r["clock"]] == clock}
        edge.append(f"    {_enable(clock, 'if ({}) ')}{vectors.function(clock, own)};")
    shown: list[str] = []
    for port, what in ports:
        if what["direction"] == "output":
            if port in repetition.shared:
                raise ValueError(f"lanes cannot share the output {port}")
            call = vectors.function(port, {port: what["bits"]}, port=port)
            shown += [
                f"  reg [{repetition.count * len(what['bits']) - 1}:0] {port}_now;",
                f"  assign {port} = {port}_now;",
            ]
            shown.append(f"  always_comb {call};")
    enables = ", ".join(_enable(clock, "{}") or "1'b1" for clock in reversed(clocks))
    lines = [*_header(name, lane, resets, repetition), *vectors.imports]
    lines += [f'  import "DPI-C" function chandle {name}_new();']
    lines += [f'  import "DPI-C" function void {name}_free(input chandle lanes);']
    lines += [f'  import "DPI-C" function void {name}_commit(input chandle lanes, input bit [{len(clocks)}:0] clocks);']
    lines += [f"  wire {port} = rst;" for port in sorted(resets - {"rst"})]
    lines += ["  chandle lanes;", "  int tick;", f"  wire [{len(clocks)}:0] clocks = {{1'b0, {enables}}};"]
    lines += ["  initial begin", f"    lanes = {name}_new();", "    tick = 0;", "  end", f"  final {name}_free(lanes);"]
    lines += [
        "  always @(posedge clk) begin",
        *edge,
        "    if (clocks != 0) begin",
        f"      {name}_commit(lanes, clocks);",
    ]
    lines += ["      tick <= tick + 1;", "    end", "  end", *shown, "endmodule", ""]
    return "\n".join(lines), vectors.text()


def _enable(clock: str, text: str) -> str:
    """`text` with the enable of a clock; nothing for the clock of the whole."""
    return "" if clock == "clk" else text.format(f"enable_{clock.removesuffix('_clk')}")


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
