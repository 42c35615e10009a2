"""Bits of emitted Verilog that are the same always: tied off, or wired to what is.

Only wires are followed: assignments of names, parts of names, constants and rows of these, and ports of modules.
A bit that logic happens to hold is no constant here; it stays a hole until somebody gives a reason.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from verif.checks.code_coverage.text import Module

__all__ = ["constant_bits"]

_TOKEN = re.compile(r"\s*(?:(\d+)'s?([bdoh])([0-9a-fA-FxXzZ?]+)|(\\\S+|[A-Za-z_]\w*)|(\d+)|(.))\s*")
_RANGE = re.compile(r"\s*\[(\d+)(?::(\d+))?\]")
_BASE = {"b": 2, "o": 8, "d": 10, "h": 16}

Bit = tuple[str, str, int]
"""Module, name, number."""


class _Unknown(Exception):
    """The expression is more than wires."""


def _bits(text: str, module: str, widths: dict[str, int]) -> list[Bit | None]:
    """From the lowest on; None is a constant. Errors: _Unknown."""
    found, rest = _expression(text, module, widths)
    if rest.strip():
        raise _Unknown
    return found


def _expression(text: str, module: str, widths: dict[str, int]) -> tuple[list[Bit | None], str]:
    match = _TOKEN.match(text)
    if match is None:
        raise _Unknown
    width, base, digits, name, times, other = match.groups()
    rest = text[match.end() :]
    if base:
        return [None] * int(width), rest
    if name:
        if name not in widths:
            raise _Unknown
        low, high = 0, widths[name] - 1
        if part := _RANGE.match(rest):
            high = int(part[1])
            low = int(part[2] or part[1])
            rest = rest[part.end() :]
        return [(module, name, n) for n in range(low, high + 1)], rest
    if times or other != "{":
        raise _Unknown
    parts: list[list[Bit | None]] = []
    repeat = re.match(r"\s*(\d+)\s*(\{.*)", rest)
    if repeat:
        inner, rest = _expression(repeat[2], module, widths)
        parts = [inner] * int(repeat[1])
    else:
        while True:
            inner, rest = _expression(rest, module, widths)
            parts.append(inner)
            rest = rest.lstrip()
            if not rest.startswith(","):
                break
            rest = rest[1:]
    rest = rest.lstrip()
    if not rest.startswith("}"):
        raise _Unknown
    return [bit for part in reversed(parts) for bit in part], rest[1:]


def _wires(modules: dict[str, Module]) -> Iterator[tuple[Bit, Bit | None]]:
    """(bit, what drives it); None is a constant."""
    placed = Counter(name for module in modules.values() for name, _ in module.below)
    widths = {m.name: {net.name: net.width for net in m.nets.values()} for m in modules.values()}
    for module in modules.values():
        mine = widths[module.name]
        pairs = [(left, module.name, right, module.name) for left, right in module.assigned]
        for name, connected in module.below:
            if name not in modules:
                continue
            ways = {net.name: net.way for net in modules[name].nets.values()}
            for port, outer in connected.items():
                if ways.get(port) == "output":
                    pairs.append((outer, module.name, port, name))
                elif placed[name] == 1:
                    pairs.append((port, name, outer, module.name))
        for left, of_left, right, of_right in pairs:
            try:
                to = _bits(left, of_left, mine if of_left == module.name else widths[of_left])
                by = _bits(right, of_right, mine if of_right == module.name else widths[of_right])
            except _Unknown:
                continue
            by += [None] * (len(to) - len(by))
            yield from ((bit, source) for bit, source in zip(to, by, strict=False) if bit is not None)


def constant_bits(modules: Iterable[Module]) -> set[Bit]:
    """Bits that are constant by their wiring."""
    behind: dict[Bit, list[Bit]] = defaultdict(list)
    found: set[Bit] = set()
    for bit, source in _wires({module.name: module for module in modules}):
        if source is None:
            found.add(bit)
        else:
            behind[source].append(bit)
    pending = list(found)
    while pending:
        for bit in behind[pending.pop()]:
            if bit not in found:
                found.add(bit)
                pending.append(bit)
    return found
