"""The modules of a netlist as it is elaborated: ports, what each places, registers, memories, a guess at the size."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rtl.emit.netlist import Netlist
from sim.area.macros import MACRO_BITS, Macro, macro_of
from sim.errors import PlexusError

__all__ = ["CLOCK", "Module", "Place", "modules_of"]

CLOCK = re.compile(r"(?:(\w+)_)?clk")
"""The name of a clock, which begins with that of its domain."""
MARK = "plexus_macro"
"""The attribute of a memory that stays one."""

_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end$", re.M | re.S)
_ATTRIBUTE = re.compile(r"^ *attribute \\(?!init\b)\S+ .*\n", re.M)
_WIRE = re.compile(r"^  wire width (\d+) +(?:(input|output) \d+ +)?(?:signed +)?\\(\S+)$", re.M)
_CELL = re.compile(r"^  cell (\S+) (\S+)\n((?:    .*\n)*)  end$", re.M)
_NUMBER = re.compile(r"^    parameter \\(\w+) (\d+)$", re.M)
_PIN = re.compile(r"^    connect \\(\S+) \\(\S+) \[0\]$", re.M)
_MEMORY = re.compile(r"^  memory width (\d+) size (\d+) (\S+)$", re.M)
_MEMID = re.compile(r'parameter \\MEMID "\\?(\S+)"')
_ASSIGN = re.compile(r"^ {6,}assign \\?\S+ \[(\d+)(?::(\d+))?\] ", re.M)
_WRAPPER = re.compile(r"^module (\w+)\(.*?^endmodule$", re.M | re.S)
_DECLARED = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", re.M)
_PLACED = re.compile(r"^  (\w+) (lane\d+) \((.*)\);$", re.M)
_TIED = re.compile(r"\.(\w*clk)\((\w*clk)\)")
_NATIVE = re.compile(r"plexus_(?:native_\w+|add_lanes)")
_NUMBERED = re.compile(r"\\(port\$\d+\$\d+)(?=[ \n])")
_KEY = re.compile(r"^    connect \\(\S+) ", re.M)


@dataclass(frozen=True, slots=True)
class Place:
    """One instance: of which module, and which net of the parent each of its clocks is."""

    module: str
    instance: str
    clocks: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Module:
    """`text` without attributes; `verilog`: else RTLIL. `ports`: direction and bits. `registers_bits` as described,
    `delay_bits` those of delay lines. `gates`: a guess at its own logic, without what it places."""

    name: str
    text: str
    verilog: bool
    ports: Mapping[str, tuple[str, int]]
    places: list[Place] = field(default_factory=list)
    macros: Counter[Macro] = field(default_factory=Counter)
    registers_bits: int = 0
    delay_bits: int = 0
    clock_gates: int = 0
    gates: float = 0.0


def _weight(kind: str, n: Mapping[str, int]) -> float:
    """Gate equivalents of a word-level cell, about."""
    a, b, y, width = n.get("A_WIDTH", 1), n.get("B_WIDTH", 1), n.get("Y_WIDTH", 1), n.get("WIDTH", 1)
    if kind == "$mul":
        return 7.0 * min(a, y) * min(b, y)
    if kind in ("$add", "$sub", "$neg"):
        return 10.0 * y
    if kind in ("$shl", "$shr", "$sshr", "$shift", "$shiftx"):
        return 2.5 * y * min(b, 16)
    if kind.startswith("$div") or kind.startswith("$mod"):
        return 12.0 * a * b
    if kind in ("$mux", "$dff"):
        return (2.5 if kind == "$mux" else 6.0) * width
    return 2.0 * max(y, a if y == 1 else 1)


def _read_cells(module: Module, known: set[str]) -> None:
    reads, writes = Counter[str](), Counter[str]()
    for kind, instance, body in _CELL.findall(module.text):
        numbers = {name: int(value) for name, value in _NUMBER.findall(body)}
        if not kind.startswith("\\"):
            if kind in ("$memrd_v2", "$memwr_v2") and (memory := _MEMID.search(body)):
                (reads if kind == "$memrd_v2" else writes)[memory[1].removeprefix("\\")] += 1
                continue
            module.registers_bits += numbers["WIDTH"] if kind == "$dff" else 0
            module.gates += _weight(kind, numbers)
            continue
        name = kind[1:]
        if name in known:
            clocks = {port: net for port, net in _PIN.findall(body) if CLOCK.fullmatch(port)}
            module.places.append(Place(name, instance.removeprefix("\\"), clocks))
        elif name in ("plexus_ram", "plexus_lookup"):
            macro, number = macro_of(name, numbers)
            module.macros[macro] += number
        elif name == "plexus_delay":
            module.delay_bits += numbers["WIDTH"] * numbers["CYCLES"]
        elif name == "plexus_clock_gate":
            module.clock_gates += 1
        elif name == "plexus_xor_map":
            module.gates += 0.75 * numbers["WIDTH"] * numbers["OUT"]
        elif _NATIVE.fullmatch(name):
            raise PlexusError(f"{module.name} places {name}, a model in C++, which has no gates")
        else:
            raise PlexusError(f"{module.name} places {name}, which is neither a module nor a cell of sim/area")
    module.gates += 2.5 * sum(int(high) - int(low or high) + 1 for high, low in _ASSIGN.findall(module.text))
    marked: set[str] = set()
    for width, size, memory in _MEMORY.findall(module.text):
        bits, name = int(width) * int(size), memory.removeprefix("\\")
        if writes[name] and bits > MACRO_BITS:
            module.macros[Macro(int(size), int(width), reads[name], writes[name])] += 1
            marked.add(memory)
        elif writes[name]:
            module.registers_bits += bits
            module.gates += bits * (8.5 + 2.5 * reads[name])
        else:
            module.gates += 0.5 * bits
    if marked:
        line = re.compile(rf"^(  memory width \d+ size \d+ (?:{'|'.join(map(re.escape, marked))}))$", re.M)
        module.text = line.sub(rf"  attribute \\{MARK} 1\n\1", module.text)


def _numbers(body: str) -> dict[str, str]:
    """New names of ports that are numbered through the whole design: by their order in the module."""
    return {name: f"port$${n}" for n, name in enumerate(dict.fromkeys(_NUMBERED.findall(body)))}


def _renamed(body: str, own: Mapping[str, str], of: Mapping[str, Mapping[str, str]]) -> str:
    """A module's text with new names, so that modules of one kind have one text; `of`: those of what it places."""

    def cell(match: re.Match[str]) -> str:
        names = of.get(match[1][1:], {})
        pins = _KEY.sub(lambda key: f"    connect \\\0{names.get(key[1], key[1])} ", match[3])
        return f"  cell {match[1]} {match[2]}\n{pins}  end"

    text = _CELL.sub(cell, body) if "port$" in body else body
    text = _NUMBERED.sub(lambda match: f"\\{own.get(match[1], match[1])}", text)
    return text.replace("\\\0", "\\")


def _rtlil(texts: Iterable[str]) -> dict[str, Module]:
    bodies = {name: body for text in texts for name, body in _MODULE.findall(_ATTRIBUTE.sub("", text))}
    own = {name: _numbers(body) for name, body in bodies.items()}
    found: dict[str, Module] = {}
    for name, body in bodies.items():
        body = _renamed(body, own[name], own)
        ports = {port: (way, int(width)) for width, way, port in _WIRE.findall(body) if way}
        found[name] = Module(name=name, text=f"module \\{name}\n{body}end\n", verilog=False, ports=ports)
    return found


def _wrappers(texts: Iterable[str]) -> dict[str, Module]:
    """Modules around lanes: wires and instances alone."""
    found: dict[str, Module] = {}
    for text in texts:
        for match in _WRAPPER.finditer(text):
            ports = {port: (way, int(high or 0) + 1) for way, high, port in _DECLARED.findall(match[0])}
            places = [Place(kind, at, dict(_TIED.findall(pins))) for kind, at, pins in _PLACED.findall(match[0])]
            found[match[1]] = Module(name=match[1], text=match[0] + "\n", verilog=True, ports=ports, places=places)
    return found


def modules_of(netlist: Netlist) -> dict[str, Module]:
    """All modules by name, the top's first. Errors: PlexusError for a cell that has no gates."""
    found = _rtlil(netlist.modules) | _wrappers(netlist.wrappers)
    for module in found.values():
        if not module.verilog:
            _read_cells(module, set(found))
    return found
