"""Lanes in C++, up to sixteen at a time: what rtl/emit/lanes.py says as loops of Verilog, for models that run long.

Registers are in C++, two of each: a clock domain's function reads what all domains show and writes the hidden ones of
its own, and `commit`, last in the cycle, shows them. So the order in which domains are called is free, as it is in
Verilog. `tick` tells a simulator that what the outputs depend on may have changed.
"""

from collections.abc import Iterable

from rtl.emit.lane_loop import Block, LaneLoop
from rtl.emit.lane_netlist import Bit, number
from rtl.emit.lane_words import LIMB, LaneWords

__all__ = ["AT_ONCE", "LaneVectors"]

_HEADER = "native_lanes.h"
AT_ONCE = 16
"""LANES of rtl/cells/native_lanes.h is this or a half or a quarter of it."""


class LaneVectors:
    """The functions of the module `name`, of a multiple of 16 lanes, in C++.

    `inputs`: width of each port that functions may read. Errors: ValueError for what such lanes cannot hold.
    """

    def __init__(self, name: str, loop: LaneLoop, inputs: dict[str, int]):
        if loop.count % AT_ONCE:
            raise ValueError(f"{loop.count} lanes are no multiple of the {AT_ONCE} that C++ does at once")
        wide = [register["name"] for register in loop.lane.registers if len(register["d"]) > LIMB]
        if wide:
            raise ValueError(f"a register of more than {LIMB} bits cannot be in such lanes")
        self.name = name
        self.loop = loop
        self.lane = loop.lane
        self.inputs = inputs
        self.clock = {r["name"]: self.lane.clocks[r["clock"]] for r in self.lane.registers}
        self.functions: list[str] = []
        self.imports: list[str] = []

    def function(self, name: str, results: dict[str, list[Bit]], *, port: str = "") -> str:
        """Add a function of registers' next values or, with `port`, of that output; returns a call of it."""
        lane, loop = self.lane, self.loop
        order, read = lane.cone(bit for bits in results.values() for bit in bits)
        once = [p for p in self.inputs if p in read & loop.shared]
        each = [p for p in self.inputs if p in read - loop.shared]
        common = loop.common(order)
        words = LaneWords(lane, loop.shared | {f"v{n}" for n in common})
        given = ["State* const s", "const w* const once", *(f"const w* const {p}_all" for p in each)]
        lines = [f"void {self.name}_{name}({', '.join([*given, *(['int', 'w* const got'] if port else [])])}) {{"]
        lines += self._shared(once, words)
        shown = [r["name"] for r in lane.registers if r["name"] in read]
        for r in shown:
            kind = words.kind(r, lane.width[r])
            pointer = "" if r in loop.shared else "* const"
            lines.append(
                f"    const {kind}{pointer} {r}{'' if r in loop.shared else '_q'} = s->{r}[s->{self.clock[r]}];"
            )
        lines += [f"    {words.declared(f'v{n}')}" for n in order if n in common]
        lines += [f"    {text}" for n in order if n in common for text in words.statements(n, False)]
        alike = {of: bits for of, bits in results.items() if of in loop.shared}
        for of, bits in alike.items():
            lines.append(f"    s->{of}[!s->{self.clock[of]}] = {words.value(bits, _size(len(bits)), False)};")
        if len(alike) < len(results):
            if port and len(results[port]) not in (32, 64):
                lines.append(f"    std::memset(got, 0, {-(-len(results[port]) * loop.count // 32)} * 4);")
            lines.append("    for (int b = 0; b < BLOCKS; ++b) {")
            lines += self._loaded(each, words)
            lines += [
                f"        const {words.kind(r, lane.width[r])} {r} = {r}_q[b];" for r in shown if r not in loop.shared
            ]
            lines += [f"        {words.declared(f'v{n}')}" for n in order if n not in common]
            lines += self._blocks(words, loop.inside(order, common, results), common)
            for of, bits in results.items():
                if of not in alike:
                    value = words.value(bits, _size(len(bits)), True)
                    hidden = f"s->{of}[!s->{self.clock.get(of)}][b] = {value};"
                    lines.append(f"        {f'put_lanes<{len(bits)}>(got, b, {value});' if port else hidden}")
            lines.append("    }")
        self.functions += [*lines, "}", ""]
        width = 2 + sum(self.inputs[p] for p in once)
        kinds = ["input chandle lanes", f"input bit [{width - 1}:0] once"]
        kinds += [f"input bit [{self.inputs[p] * loop.count - 1}:0] {p}_all" for p in each]
        values = ["lanes", f"{{{', '.join(['2' + chr(39) + 'b0', *reversed(once)])}}}", *each]
        if port:
            kinds += ["input int tick", f"output bit [{len(results[port]) * loop.count - 1}:0] got"]
            values += ["tick", f"{port}_now"]
        full = f"{self.name}_{name}"
        self.imports.append(f'  import "DPI-C" function void {full}({", ".join(kinds)});')
        return f"{full}({', '.join(values)})"

    def _shared(self, once: Iterable[str], words: LaneWords) -> list[str]:
        """What is one number for all lanes, out of the bits that come together."""
        lines: list[str] = []
        at = 0
        for port in once:
            width = self.inputs[port]
            for name, low, bits in _limbs(words.name(port), width):
                text = f"field(once, {at + low}, {bits})"
                kind = "w" if width <= 32 else "d"
                lines.append(f"    const {kind} {name} = {f'narrow({text})' if kind == 'w' else text};")
            at += width
        return lines

    def _loaded(self, each: Iterable[str], words: LaneWords) -> list[str]:
        """The lanes' part of each input."""
        lines: list[str] = []
        for port in each:
            width = self.inputs[port]
            for name, low, bits in _limbs(words.name(port), width):
                kind = words.kind(port, min(width, LIMB))
                lines.append(f"        const {kind} {name} = lanes_of<{width}, {low}, {bits}, {kind}>({port}_all, b);")
        return lines

    def _blocks(self, words: LaneWords, inside: dict[Block, list[int]], common: set[int]) -> list[str]:
        """The cells in order; what only one side of a choice needs that all lanes make alike is under an `if`."""
        lane, loop = self.lane, self.loop

        def block(where: Block, indent: str) -> list[str]:
            lines: list[str] = []
            for n in inside.get(where, []):
                sides = [(side, bits) for side, bits in loop.sides(n, common) if side is not None]
                if not any((n, side) in inside for side, _ in sides):
                    lines += [f"{indent}{text}" for text in words.statements(n, True)]
                    continue
                select = lane.cells[n]["connections"]["S"]
                size = _size(lane.width[f"v{n}"])
                start = indent
                for side, bits in sides:
                    test = f"if ({words.value([select[side]], 32, False)}) " if side >= 0 else ""
                    lines += [f"{start}{test}{{", *block((n, side), indent + "    ")]
                    lines += [f"{indent}    v{n} = {words.value(bits, size, True)};", f"{indent}}}"]
                    start = f"{indent}else "
            return lines

        return block(None, "        ")

    def text(self) -> str:
        """The file: tables, registers, the functions, and those that make, free and advance the lanes."""
        words = LaneWords(self.lane, self.loop.shared)
        clocks = sorted(set(self.clock.values()))
        lines = [f'#include "{_HEADER}"', "using namespace plexus_lanes;", "", *self._tables(), "namespace {"]
        lines += [
            f"constexpr int BLOCKS = {self.loop.count} / LANES;",
            "",
            "struct State {",
            *(f"    int {clock} = 0;  // which of two are shown" for clock in clocks),
        ]
        begin: list[str] = []
        for register in self.lane.registers:
            name, width, init = register["name"], len(register["d"]), int(register["init"], 2)
            kind = words.kind(name, width)
            many = "" if name in self.loop.shared else "[BLOCKS]"
            lines.append(f"    {kind} {name}[2]{many};")
            first = f"{init:#x}{'u' if width <= 32 else 'ull'}"
            if many:
                begin.append(f"        for (int b = 0; b < BLOCKS; ++b) {name}[0][b] = {name}[1][b] = all({first});")
            else:
                begin.append(f"        {name}[0] = {name}[1] = {first};")
        lines += ["", "    State() {", *begin, "    }", "};", "}  // namespace", "", 'extern "C" {', ""]
        lines += [f"void* {self.name}_new() {{ return new State; }}", ""]
        lines += [f"void {self.name}_free(State* s) {{ delete s; }}", "", *self.functions]
        lines += [f"void {self.name}_commit(State* const s, const w* const clocks) {{"]
        lines += [f"    s->{clock} ^= *clocks >> {n} & 1;" for n, clock in enumerate(clocks)]
        return "\n".join([*lines, "}", "}", ""])

    def _tables(self) -> list[str]:
        """Constants of the lane's read-only memories."""
        lines: list[str] = []
        for n, cell in enumerate(self.lane.cells):
            if cell["type"] == "$mem_v2":
                p = cell["parameters"]
                width, size = number(p["WIDTH"]), number(p["SIZE"])
                content = int(p["INIT"].replace("x", "0"), 2)
                values = [content >> width * k & (1 << width) - 1 for k in range(size)]
                values += [0] * ((1 << len(cell["connections"]["RD_ADDR"])) - size)
                suffix = "u" if width <= 32 else "ull"
                text = ", ".join(f"{value:#x}{suffix}" for value in values)
                lines += [f"static const {'w' if width <= 32 else 'd'} rom{n}[] = {{{text}}};", ""]
        return lines


def _size(width: int) -> int:
    return 32 if width <= 32 else 64


def _limbs(name: str, width: int) -> list[tuple[str, int, int]]:
    """Name, lowest bit and bits of each variable of a value."""
    if width <= LIMB:
        return [(name, 0, width)]
    return [(f"{name}_{low // LIMB}", low, min(LIMB, width - low)) for low in range(0, width, LIMB)]
