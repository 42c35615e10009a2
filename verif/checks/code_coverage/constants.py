"""Bits of emitted Verilog that are the same always: tied off, or given one constant only, wherever they are assigned.

Followed are assignments of names, parts of names, constants and rows of these, both sides of a multiplexer, initial
values and ports of modules. What an operator makes may be anything here, so a bit that arithmetic happens to hold is
no constant; it stays a hole until somebody gives a reason.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from verif.checks.code_coverage.text import Module

__all__ = ["constant_bits"]

_TOKEN = re.compile(r"\s*(?:(\d+)'s?([bdoh])([0-9a-fA-FxXzZ?]+)|(\\\S+|[A-Za-z_]\w*)|(\d+)|(.))\s*")
_RANGE = re.compile(r"\s*\[(\d+)(?::(\d+))?\]")
_BITS_OF_A_DIGIT = {"b": 1, "o": 3, "h": 4}
_NAME = re.compile(r"\\\S+|[A-Za-z_]\w*")
_STATEMENT = re.compile(r"^ +(?:assign )?(\{.*?\}|\\?\S+? ?(?:\[[^\]]*\])?) ?<?= (.*);$")
_INITIAL = re.compile(r"^  reg (?:signed )?(?:\[\d+:0\] )?(\S+) ?= (.*);$")
_CHOICE = re.compile(r".*? \? (.*) : (.*)")
_MORE, _ANY = 2, 3
"""A bit that may be 0 or 1; a bit of a constant that nobody cares for."""

Bit = tuple[str, str, int]
"""Module, name, number."""


class _Unknown(Exception):
    """The expression is more than wires."""


def _constant(width: int, base: str, digits: str) -> list[Bit | int]:
    """From the lowest bit on."""
    if base == "d":
        return [int(digits) >> n & 1 for n in range(width)]
    each = _BITS_OF_A_DIGIT[base]
    found: list[Bit | int] = []
    for digit in reversed(digits):
        found += [int(digit, 16) >> n & 1 if digit.isalnum() and digit not in "xXzZ" else _ANY for n in range(each)]
    return (found + [0] * width)[:width]


def _bits(text: str, module: str, widths: dict[str, int]) -> list[Bit | int]:
    """From the lowest on. Errors: _Unknown."""
    found, rest = _expression(text, module, widths)
    if rest.strip():
        raise _Unknown
    return found


def _expression(text: str, module: str, widths: dict[str, int]) -> tuple[list[Bit | int], str]:
    match = _TOKEN.match(text)
    if match is None:
        raise _Unknown
    width, base, digits, name, times, other = match.groups()
    rest = text[match.end() :]
    if base:
        return _constant(int(width), base, digits), rest
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
    parts: list[list[Bit | int]] = []
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


def _statements(module: Module) -> Iterator[tuple[str, str]]:
    """(left, right) of each assignment and initial value; both sides of a multiplexer."""
    for line in module.text.values():
        if match := _INITIAL.match(line) or _STATEMENT.match(line):
            left, right = match[1], match[2]
            chosen = _CHOICE.fullmatch(right)
            yield from ((left, side) for side in (chosen.groups() if chosen else (right,)))


def _pairs(modules: dict[str, Module]) -> Iterator[tuple[str, str, str, str]]:
    """(module, left, module, right): what may drive what."""
    for module in modules.values():
        if not any(line.startswith("  function") for line in module.text.values()):  # lanes: nothing is followed
            yield from ((module.name, left, module.name, right) for left, right in _statements(module))
        for name, connected in module.below:
            inner = modules.get(name)
            ways = {net.name: net.way for net in inner.nets.values()} if inner else {}
            for port, outer in connected.items():
                if ways.get(port) == "input":
                    yield name, port, module.name, outer
                else:
                    yield module.name, outer, name, port


class _Values:
    """What each bit may be: nothing yet, one value, or more than one."""

    def __init__(self) -> None:
        self.known: dict[Bit, int] = {}
        self._read_by: dict[Bit, list[Bit]] = defaultdict(list)
        self._pending: list[Bit] = []

    def drive(self, bit: Bit, by: Bit | int) -> None:
        """One of its drivers: a bit, or 0, 1, _ANY or _MORE."""
        if not isinstance(by, int):
            self._read_by[by].append(bit)
        elif by != _ANY:
            self._may_be(bit, by)

    def _may_be(self, bit: Bit, value: int) -> None:
        before = self.known.get(bit)
        if before not in (value, _MORE):
            self.known[bit] = value if before is None else _MORE
            self._pending.append(bit)

    def settle(self, driven: set[Bit]) -> None:
        """Follow the drivers; what has none may be anything."""
        for bit in set(self._read_by) - driven:
            self._may_be(bit, _MORE)
        while self._pending:
            bit = self._pending.pop()
            for reader in self._read_by[bit]:
                self._may_be(reader, self.known[bit])


def constant_bits(modules: Iterable[Module]) -> set[Bit]:
    """Bits that no input and no state can change."""
    by_name = {module.name: module for module in modules}
    widths = {m.name: {net.name: net.width for net in m.nets.values()} for m in by_name.values()}
    values = _Values()
    driven: set[Bit] = set()
    for of_left, left, of_right, right in _pairs(by_name):
        mine = widths[of_left]
        try:
            to = _bits(left, of_left, mine)
        except _Unknown:
            to = [(of_left, name, n) for name in _NAME.findall(left) for n in range(mine.get(name, 0))]
            right = ""
        try:
            by = _bits(right, of_right, widths.get(of_right, {}))
            by += [0] * (len(to) - len(by))
        except _Unknown:
            by = [_MORE] * len(to)
        for bit, source in zip(to, by, strict=False):
            if not isinstance(bit, int):
                driven.add(bit)
                values.drive(bit, source)
    values.settle(driven)
    return {bit for bit in driven if values.known.get(bit) != _MORE}
