"""A lane's netlist: its registers and word-level cells, who drives each bit, and what a cell says in Verilog."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from amaranth.back import rtlil
from amaranth.lib import wiring

from rtl.emit.quick import quick_netlists
from rtl.emit.yosys import run_yosys

__all__ = ["Bit", "LaneNetlist", "number"]

_SCRIPT = "proc; flatten; memory_collect; opt_expr; opt_merge; opt_expr; opt_clean; write_json"
_UNARY = {
    "$not": "~",
    "$pos": "+",
    "$neg": "-",
    "$reduce_and": "&",
    "$reduce_or": "|",
    "$reduce_bool": "|",
    "$reduce_xor": "^",
    "$reduce_xnor": "~^",
    "$logic_not": "!",
}
_BINARY = {
    **{"$and": "&", "$or": "|", "$xor": "^", "$xnor": "~^", "$add": "+", "$sub": "-", "$mul": "*"},
    **{"$lt": "<", "$le": "<=", "$eq": "==", "$ne": "!=", "$ge": ">=", "$gt": ">"},
    **{"$eqx": "==", "$nex": "!=", "$shl": "<<", "$sshl": "<<", "$shr": ">>", "$sshr": ">>>"},
    **{"$logic_and": "&&", "$logic_or": "||"},
}
Bit = int | str
"""A net's number, or a constant digit."""


def _netlist(factory: Callable[[], wiring.Component]) -> dict[str, Any]:
    """The flattened lane as Yosys writes it in JSON."""
    with quick_netlists(fields=False):
        text = rtlil.convert(factory(), name="lane", emit_src=False)
    return json.loads(run_yosys(text, _SCRIPT.split("; ")))["modules"]["lane"]


def number(parameter: str | int) -> int:
    """A parameter as Yosys writes it."""
    return parameter if isinstance(parameter, int) else int(parameter, 2)


class LaneNetlist:
    """The component that `factory` makes, flattened by Yosys.

    `registers` have a name, the bits `d` of their next value, the net of their clock and their `init` digits; `cells`
    drive one variable each, v and their number; `ports` are as Yosys writes them.
    """

    def __init__(self, factory: Callable[[], wiring.Component]):
        netlist = _netlist(factory)
        self.ports: dict[str, Any] = netlist["ports"]
        self.cells: list[dict[str, Any]] = []
        self.registers: list[dict[str, Any]] = []
        self.of_bit: dict[int, tuple[str, int]] = {}  # variable and position
        self.width: dict[str, int] = {}
        self.driver: dict[str, int] = {}  # variable -> cell
        initial: dict[int, str] = {}
        for net in netlist["netnames"].values():
            init = net["attributes"].get("init")
            if init is not None:
                initial |= dict(zip(net["bits"], reversed(init), strict=False))
        for name, port in self.ports.items():
            if port["direction"] == "input":
                self._name(name, port["bits"])
        for cell in netlist["cells"].values():
            connections = cell["connections"]
            if cell["type"] == "$scopeinfo":
                continue
            if cell["type"] == "$dff":
                bits = connections["Q"]
                name = f"r{len(self.registers)}"
                value = "".join(reversed([initial.get(b, "0") for b in bits])).replace("x", "0")
                clock = connections["CLK"][0]
                self.registers.append({"name": name, "d": connections["D"], "clock": clock, "init": value})
            else:
                out = "RD_DATA" if cell["type"] == "$mem_v2" else "Y"
                bits = connections[out]
                name = f"v{len(self.cells)}"
                self.driver[name] = len(self.cells)
                self.cells.append(cell)
            self._name(name, bits)
        self.clocks = {port["bits"][0]: name for name, port in self.ports.items() if re.fullmatch(r"(.+_)?clk", name)}

    def _name(self, name: str, bits: list[Bit]) -> None:
        self.width[name] = len(bits)
        for at, bit in enumerate(bits):
            if isinstance(bit, int):
                self.of_bit[bit] = name, at

    def value(self, bits: list[Bit]) -> str:
        """Verilog for these bits, lowest first."""
        parts: list[str] = []
        at = 0
        while at < len(bits):
            end = at + 1
            bit = bits[at]
            if isinstance(bit, str):
                while end < len(bits) and isinstance(bits[end], str):
                    end += 1
                digits = "".join(reversed([str(b) for b in bits[at:end]])).replace("x", "0").replace("z", "0")
                parts.append(f"{end - at}'h{int(digits, 2):x}")
            else:
                name, low = self.of_bit[bit]
                while (
                    end < len(bits)
                    and isinstance(bits[end], int)
                    and (self.of_bit[int(bits[end])] == (name, low + end - at))
                ):
                    end += 1
                high = low + end - at - 1
                whole = low == 0 and high == self.width[name] - 1
                parts.append(name if whole else f"{name}[{high}:{low}]" if high > low else f"{name}[{low}]")
            at = end
        return parts[0] if len(parts) == 1 else "{" + ", ".join(reversed(parts)) + "}"

    def statement(self, n: int) -> str:
        """What cell `n` computes."""
        cell = self.cells[n]
        kind, c, p = cell["type"], cell["connections"], cell["parameters"]

        def operand(name: str) -> str:
            text = self.value(c[name])
            return f"$signed({text})" if number(p.get(f"{name}_SIGNED", "0")) else text

        if kind in _UNARY:
            said = f"{_UNARY[kind]}{operand('A')}"
        elif kind in _BINARY:
            said = f"{operand('A')} {_BINARY[kind]} {operand('B')}"
        elif kind == "$mux":
            said = f"{self.value(c['S'])} ? {self.value(c['B'])} : {self.value(c['A'])}"
        elif kind == "$pmux":
            width = len(c["Y"])
            said = self.value(c["A"])
            for k in reversed(range(len(c["S"]))):
                said = f"{self.value([c['S'][k]])} ? {self.value(c['B'][k * width : (k + 1) * width])} : ({said})"
        elif kind in ("$shift", "$shiftx"):
            a, b = self.value(c["A"]), self.value(c["B"])
            said = f"{a} >> {b}"
            if number(p["B_SIGNED"]):
                said = f"($signed({b}) < 0) ? ({a} << -{b}) : ({a} >> {b})"
        elif kind == "$mem_v2" and number(p["WR_PORTS"]) == 0 and number(p["RD_PORTS"]) == 1:
            said = f"rom{n}[{number(p['WIDTH'])} * {self.value(c['RD_ADDR'])} +: {number(p['WIDTH'])}]"
        else:
            raise ValueError(f"a lane cannot hold a cell of type {kind}")
        return f"v{n} = {said};"

    def tables(self) -> list[str]:
        """Constants of the lane's read-only memories."""
        found: list[str] = []
        for n, cell in enumerate(self.cells):
            if cell["type"] == "$mem_v2":
                p = cell["parameters"]
                bits = number(p["WIDTH"]) * number(p["SIZE"])
                content = int(p["INIT"].replace("x", "0"), 2)
                found.append(f"  localparam [{bits - 1}:0] rom{n} = {bits}'h{content:x};")
        return found

    def cone(self, bits: Iterable[Bit]) -> tuple[list[int], set[str]]:
        """Cells that these bits depend on, in order, and the ports and registers that they read."""
        order: list[int] = []
        read: set[str] = set()
        seen: set[str] = set()
        stack: list[tuple[str, bool]] = [(name, False) for name in self.names(bits)]
        while stack:
            name, ready = stack.pop()
            if name not in self.driver:
                read.add(name)
                continue
            cell = self.driver[name]
            if ready:
                order.append(cell)
                continue
            if name in seen:
                continue
            seen.add(name)
            stack.append((name, True))
            stack += [(n, False) for n in self.names(self.inputs(cell)) if n not in seen]
        return order, read

    def inputs(self, n: int) -> list[Bit]:
        """All bits that cell `n` looks at."""
        cell = self.cells[n]
        found: list[Bit] = []
        for port, direction in cell["port_directions"].items():
            if direction == "input":
                found += cell["connections"][port]
        return found

    def sides(self, n: int) -> list[tuple[int | None, list[Bit]]]:
        """What a multiplexer looks at: its select (None), then the value for each bit of it, at last that for none."""
        c = self.cells[n]["connections"]
        width = len(c["Y"])
        chosen = [(n, c["B"][n * width : (n + 1) * width]) for n in range(len(c["S"]))]
        return [(None, c["S"]), *chosen, (-1, c["A"])]

    def names(self, bits: Iterable[Bit]) -> list[str]:
        return list({self.of_bit[b][0]: None for b in bits if isinstance(b, int)})
