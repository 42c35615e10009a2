"""The Verilog of a model, line by line: which signal a line declares, which branch it begins, and of what."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Branch", "Module", "Net", "base_name", "modules_of"]

_MODULE = re.compile(r"^module (\S+?) ?[(;]")
_DECLARED = re.compile(
    r"^  (input|output|inout|wire|reg) (?:signed )?(?:\[(\d+):0\] )?(\S+?) *(\[[^\]]*\])? ?(?:= .*)?;$"
)
_PORT_OF_LANES = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\w+),?$")
_INSTANCE = re.compile(r"^  (\S+) +(?:#\(.*)?(\S+) \($")
_CONNECTED = re.compile(r"^    \.(\S+?) ?\((.*)\),?$")
_ASSIGN = re.compile(r"^  assign (.+?) += (.*);$")
_TARGET = re.compile(r"^ +(\\?\S+?) ?(?:\[[^\]]*\])? ?<?= ")
_HEAD = re.compile(r"^( +)(always.*|if \(.*|(?:end )?else.*|casez? \(.*|.*:|function.*|for \(.*)$")
_CLOCKED = re.compile(r"^    (\S+) ?<= (\\\$\d+) ;$")
_NET = re.compile(r"(\\\S*\$\d+) |\b(v\d+)\b")
"""A net whose name differs from model to model: of an expression, the second of its name, or of a loop over lanes."""
_LANES = re.compile(r"< \d+(?=; \w+ =)")
_LOOPED = re.compile(r"v\d+")
_DOMAIN = re.compile(r"\b\w+_(clk|rst)\b")


def base_name(name: str) -> str:
    r"""What its writer called a signal: Amaranth adds $ and a number to a second of the same name; \ is Verilog's."""
    return name.removeprefix("\\").partition("$")[0]


@dataclass(frozen=True, slots=True)
class Net:
    """A declared signal. `way`: input or output, empty inside. `nth`: of those with the same name from the same line
    of Python. `array`: of words."""

    name: str
    width: int
    way: str
    place: str
    nth: int
    array: bool

    @property
    def written(self) -> bool:
        """Somebody wrote it: it is no net or port that an expression made."""
        return base_name(self.name) not in ("", "port")


@dataclass(frozen=True, slots=True)
class Branch:
    """A line at which something is decided or begins. `of`: the signal that the process is for, and its place.
    `path`: the conditions above it and its own, with the place of each one that is an expression."""

    of: str
    place: str
    path: tuple[str, ...]
    nth: int


@dataclass(slots=True)
class Module:
    """`at`: where the Python is that describes it, as in rtl/base/fifo.py:52. By line: `text`, `nets`, `branches`.
    `below`: instances, as (module, {port: expression})."""

    name: str
    at: str
    text: dict[int, str]
    nets: dict[int, Net] = field(default_factory=dict)
    branches: dict[int, Branch] = field(default_factory=dict)
    below: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def _file_of(name: str, places: Mapping[str, dict]) -> str:
    """Of a module, or of the one around it if a library describes it."""
    known = name.strip()
    while True:
        if at := places.get(known, {}).get("at", ""):
            return at
        if "." not in known:
            return ""
        known = known.rpartition(".")[0]
        known = known if known in places else known.removeprefix("\\")


def _nets(lines: list[tuple[int, str]], names: Mapping[str, str]) -> Iterator[tuple[int, Net]]:
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for number, line in lines:
        if match := _DECLARED.match(line) or _PORT_OF_LANES.match(line):
            kind, high, name = match[1], match[2], match[3]
            array = match.re is _DECLARED and bool(match[4])
            found.append((number, name, int(high or 0) + 1, "" if kind in ("wire", "reg") else kind, array))
    ports = {name for _, name, _, way, _ in found if way}
    order = {name: int(tail) if (tail := name.rpartition("$")[2].strip()).isdigit() else -1 for _, name, *_ in found}
    for number, name, width, way, array in sorted(found, key=lambda f: (order[f[1]], f[0])):
        if name in ports and not way:
            continue  # the second line of a port
        place = names.get(name, "")
        key = base_name(name), place
        yield number, Net(name, width, way, place, seen[key], array)
        seen[key] += 1


def _target(lines: list[tuple[int, str]], start: int) -> str:
    """What the process assigns whose head is lines[start]."""
    for _, line in lines[start + 1 :]:
        if line.startswith("  end") or not line.startswith("   "):
            break
        if match := _TARGET.match(line):
            return match[1]
    return ""


def _branches(lines: list[tuple[int, str]], names: Mapping[str, str]) -> Iterator[tuple[int, Branch]]:
    seen: Counter[tuple[object, ...]] = Counter()

    def numbered(of: str, path: tuple[str, ...]) -> Branch:
        shown = "expression" if _LOOPED.fullmatch(of) else base_name(of)
        place = names.get(of, "")
        seen[shown, place, path] += 1
        return Branch(shown, place, path, seen[shown, place, path] - 1)

    stored = {match[2]: match[1] for _, line in lines if (match := _CLOCKED.match(line))}
    of = ""
    stack: list[tuple[int, str]] = []
    for index, (number, line) in enumerate(lines):
        if match := _ASSIGN.match(line):
            if " ? " in match[2]:
                yield number, numbered(match[1], ())
        elif match := _HEAD.match(line):
            indent = len(match[1])
            while stack and stack[-1][0] >= indent:
                stack.pop()
            if indent == 2:
                of = _target(lines, index)
                of = stored.get(of, of)
            text = _NET.sub(lambda net: names.get(net[1], base_name(net[1] or "") or "expression"), match[2])
            text = _LANES.sub("< lanes", _DOMAIN.sub(r"\1", text.removesuffix(" begin")))
            stack.append((indent, text.strip()))
            yield number, numbered(of, tuple(text for _, text in stack))
        elif " ? " in line:
            yield number, numbered(of, (*(text for _, text in stack), "?"))


def _module(name: str, lines: list[tuple[int, str]], places: Mapping[str, dict]) -> Module:
    names = places.get(name, {}).get("names", {})
    module = Module(name, _file_of(name, places), dict(lines))
    module.nets.update(_nets(lines, names))
    module.branches.update(_branches(lines, names))
    connected: dict[str, str] | None = None
    for _, line in lines:
        if match := _INSTANCE.match(line):
            connected = {}
            module.below.append((match[1], connected))
        elif connected is not None and (match := _CONNECTED.match(line)):
            connected[match[1]] = match[2].strip()
        elif line.startswith("  )"):
            connected = None
    return module


def modules_of(text: str, places: Mapping[str, dict]) -> Iterator[Module]:
    """The modules of emitted Verilog; `places` from places.json (rtl.emit.located)."""
    parts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        if match := _MODULE.match(line):
            name = match[1]
        if name:
            parts[name].append((number, line))
    for name, lines in parts.items():
        yield _module(name, lines, places)
