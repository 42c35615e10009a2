"""A design taken apart into units, each synthesised once: what is flattened together, and how often it is there.

A unit is a module with all that it places but other units. Modules of equal text are one unit, whatever their names.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sim.area.macros import Macro
from sim.area.modules import CLOCK, Module

__all__ = ["Unit", "take_apart"]

_OFTEN = 2_000.0
"""Guessed gates of a module with registers above which it is a unit if it is there more often than what places it."""
_LARGEST = 60_000.0
"""The same that are flattened together, if there is any way to take them apart."""
_SMALLEST = 400.0
"""Of what is taken out of one that is larger."""
_PIN = 0.05
"""What a pin of a placed unit counts among guessed gates: a module that only places has a size, too."""
ROOT = "root"


@dataclass(slots=True, kw_only=True)
class Unit:
    """`modules`: flattened together, the first is its top; `boxes`: units inside, by name of module. `count`: instances
    in the design, by branch, the first step of the way to them; `domains`: of its clocks, of one without those of what
    places it; `names`: of equal modules."""

    digest: str
    modules: list[Module]
    boxes: dict[str, Module]
    names: list[str]
    branches: Counter[str] = field(default_factory=Counter)
    domains: set[str] = field(default_factory=set)
    macros: Counter[Macro] = field(default_factory=Counter)
    registers_bits: int = 0
    delay_bits: int = 0
    clock_gates: int = 0
    gates: float = 0.0  # guessed

    @property
    def count(self) -> int:
        """Instances in the design."""
        return sum(self.branches.values())


def _sha(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class _Apart:
    """Decides on units, children first."""

    def __init__(self, modules: Mapping[str, Module]):
        self.modules = modules
        self.order: list[str] = []
        self._visit()
        self.whole: dict[str, str] = {}  # digest of a module and all below
        self.stateful: dict[str, bool] = {}
        for name in self.order:
            module = modules[name]
            below = [place.module for place in module.places]
            self.whole[name] = self._text(module, {child: self.whole[child] for child in below})
            own = module.registers_bits or module.delay_bits or module.macros or module.clock_gates
            self.stateful[name] = bool(own) or any(self.stateful[child] for child in below)
        self.units: set[str] = set()
        self.rest: dict[str, float] = {}
        self._choose()

    def _visit(self) -> None:
        done: set[str] = set()
        stack = [(next(iter(self.modules)), False)]
        while stack:
            name, left = stack.pop()
            if left:
                self.order.append(name)
            elif name not in done:
                done.add(name)
                stack.append((name, True))
                stack += [(place.module, False) for place in self.modules[name].places]

    @staticmethod
    def _text(module: Module, children: Mapping[str, str]) -> str:
        """A digest of the text without its name and with digests for names of modules that it places."""
        text = module.text.replace(module.name, "", 1)
        for place in module.places:
            if module.verilog:
                text = text.replace(f"\n  {place.module} {place.instance} ", f"\n  {children[place.module]} lane ")
            else:
                text = text.replace(f"  cell \\{place.module} ", f"  cell {children[place.module]} ")
        return _sha(text)

    @cached_property
    def counts(self) -> Counter[str]:
        """Instances of each module and of its equals, by digest of the whole."""
        found: Counter[str] = Counter({self.order[-1]: 1})
        for name in reversed(self.order):
            for place in self.modules[name].places:
                found[place.module] += found[name]
        by_digest: Counter[str] = Counter()
        for name, count in found.items():
            by_digest[self.whole[name]] += count
        return by_digest

    def _pins(self, name: str) -> float:
        return _PIN * sum(width for _, width in self.modules[name].ports.values())

    def _part(self, name: str) -> float:
        """What a placed module adds to what places it."""
        return self._pins(name) if name in self.units else self.rest[name]

    def _choose(self) -> None:
        for name in self.order:
            module = self.modules[name]
            below = Counter(place.module for place in module.places)
            for child in below:
                often = self.counts[self.whole[child]] > self.counts[self.whole[name]]
                if often and self.stateful[child] and self.rest[child] >= _OFTEN:
                    self._make_unit(child)
            size = module.gates + sum(count * self._part(child) for child, count in below.items())
            for child in sorted(below.keys() - self.units, key=lambda n: (-self.rest[n], n)):
                if size <= _LARGEST or self.rest[child] < _SMALLEST:
                    break
                if child not in self.units:  # nor equal to one that was
                    self._make_unit(child)
                    size = module.gates + sum(count * self._part(of) for of, count in below.items())
            self.rest[name] = size
        self._make_unit(self.order[-1])

    def _make_unit(self, name: str) -> None:
        """With all of equal text."""
        self.units |= {other for other in self.order if self.whole[other] == self.whole[name]}

    def flattened(self, name: str) -> list[str]:
        """The modules of a unit, its own first, each once."""
        found, pending = [name], [name]
        while pending:
            for place in self.modules[pending.pop()].places:
                if place.module not in self.units and place.module not in found:
                    found.append(place.module)
                    pending.append(place.module)
        return found

    def digest(self, name: str) -> str:
        """Of what Yosys sees of a unit: units inside are ports only."""
        known: dict[str, str] = {}
        for inner in sorted(self.flattened(name), key=self.order.index):
            module = self.modules[inner]
            for place in module.places:
                if place.module in self.units:
                    known[place.module] = _sha(repr(sorted(self.modules[place.module].ports.items())))
            known[inner] = self._text(module, known)
        return known[name]


def _domain_of(clock: str) -> str:
    match = CLOCK.fullmatch(clock)
    return match[1] if match and match[1] else ROOT


def take_apart(modules: Mapping[str, Module]) -> list[Unit]:
    """The units of a design, the top's last, each with all its instances."""
    apart = _Apart(modules)
    units: dict[str, Unit] = {}
    of_module: dict[str, Unit] = {}
    for name in (n for n in apart.order if n in apart.units):
        digest = apart.digest(name)
        inner = [modules[n] for n in apart.flattened(name)]
        boxes = {p.module: modules[p.module] for m in inner for p in m.places if p.module in apart.units}
        new = Unit(digest=digest, modules=inner, boxes=boxes, names=[], gates=apart.rest[name])
        unit = units.setdefault(digest, new)
        unit.names.append(name)
        of_module[name] = unit
    top = apart.order[-1]
    branches: dict[str, Counter[str]] = {name: Counter() for name in apart.order}
    clocks: dict[str, dict[str, set[str]]] = {name: {} for name in apart.order}
    around: dict[str, set[str]] = {name: set() for name in apart.order}
    branches[top]["top"] = 1
    clocks[top] = {port: {_domain_of(port)} for port in modules[top].ports if CLOCK.fullmatch(port)}
    for name in reversed(apart.order):
        if clocks[name]:
            around[name] = set().union(*clocks[name].values())
        for place in modules[name].places:
            around[place.module] |= around[name]
            into = branches[place.module]
            for branch, count in branches[name].items():
                into[place.instance if name == top else branch] += count
            for port, net in place.clocks.items():
                domains = clocks[name].get(net, {_domain_of(net)})
                clocks[place.module].setdefault(port, set()).update(domains)
    for name, unit in of_module.items():
        unit.branches += branches[name]
    for unit in units.values():
        _sum_up(unit, apart)
        unit.domains = set().union(*(around[name] for name in unit.names))
    return list(units.values())


def _sum_up(unit: Unit, apart: _Apart) -> None:
    """What one instance holds, of all modules flattened into it as often as they are there."""
    times = Counter({unit.modules[0].name: 1})
    mine = {module.name for module in unit.modules}
    for module in sorted(unit.modules, key=lambda m: -apart.order.index(m.name)):
        for place in module.places:
            if place.module in mine:
                times[place.module] += times[module.name]
        for macro, count in module.macros.items():
            unit.macros[macro] += count * times[module.name]
        unit.registers_bits += module.registers_bits * times[module.name]
        unit.delay_bits += module.delay_bits * times[module.name]
        unit.clock_gates += module.clock_gates * times[module.name]
