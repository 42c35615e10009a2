"""The gates of a unit and of a mutant as a graph: which nets of both are the same function of inputs and registers.

Nets get colours. An input or the output of a register has one by its name, what a gate drives has one by the gate's
kind and the colours that go in: the same colour in both netlists is the same function, but not the other way round.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["GATES", "Colours", "Gates", "LoopError", "Net", "inputs_of", "outputs_of"]

GATES = ("simplemap", "opt_clean -purge")
"""Commands that leave a netlist of gates, without those of which no output or register learns."""

_STATEFUL = ("ff", "latch", "mem", "sr_", "fsm")

_Cell = Mapping[str, Any]
Net = int | str
"""A number, or a constant: 0, 1, x or z."""


class LoopError(Exception):
    """Wide cells read each other's bits."""


def inputs_of(cell: _Cell) -> Iterator[Net]:
    """Nets, in the order of ports."""
    for port, nets in sorted(cell["connections"].items()):
        if cell["port_directions"][port] != "output":
            yield from nets


def outputs_of(cell: _Cell) -> Iterator[tuple[str, int, Net]]:
    """Port, place and net."""
    for port, nets in sorted(cell["connections"].items()):
        if cell["port_directions"][port] == "output":
            yield from ((port, at, net) for at, net in enumerate(nets))


def _is_function(cell: _Cell) -> bool:
    """Its outputs depend on its inputs alone: a cell of Yosys that has some and holds nothing."""
    kind = cell["type"].lower()
    return any(outputs_of(cell)) and kind.startswith("$") and not any(word in kind for word in _STATEFUL)


def _names(module: _Cell, known: set[str]) -> dict[Net, tuple[str, int]]:
    """The first name of each net, of those `known`."""
    names: dict[Net, tuple[str, int]] = {}
    for name in sorted(module["netnames"].keys() & known):
        for at, net in enumerate(module["netnames"][name]["bits"]):
            names.setdefault(net, (name, at))
    return names


def _starts(module: _Cell) -> dict[Net, str]:
    """What registers begin with, by the net of their output."""
    starts: dict[Net, str] = {}
    for about in module["netnames"].values():
        starts |= zip(about["bits"], reversed(about["attributes"].get("init", "")), strict=False)
    return starts


class Colours:
    """Of the nets of both netlists."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def number(self, what: Any) -> int:
        """The same for the same `what`."""
        return self._numbers.setdefault(what, len(self._numbers))

    def own(self) -> int:
        """Told to one netlist only: what it says of itself with this is like nothing of the other."""
        return self.number(("own", len(self._numbers)))


class Gates:
    """One netlist of Yosys's JSON, after GATES. `known`: the names that both have.

    `functions`: the cell that drives a net, unless it is a source: an input, or the output of what holds state.
    `colours`: of all nets that sinks depend on. `sinks`: nets that somebody reads, by what reads them in both netlists.
    `others`: cells without outputs, with all that goes in.
    """

    def __init__(self, module: _Cell, known: set[str], numbers: Colours):
        """Errors: LoopError."""
        own = numbers.own()
        names, starts = _names(module, known), _starts(module)
        self._numbers = numbers
        self._unknown = lambda net: names.get(net, (own, net))
        self.colours: dict[Net, int] = {bit: numbers.number(("constant", bit)) for bit in "01xz"}
        self.functions: dict[Net, _Cell] = {}
        self._places: dict[Net, tuple[str, int]] = {}
        for port, about in module["ports"].items():
            if about["direction"] != "output":
                self.colours |= {net: numbers.number(("input", port, at)) for at, net in enumerate(about["bits"])}
        holding = [cell for cell in module["cells"].values() if not _is_function(cell)]
        for cell in module["cells"].values():
            for port, at, net in outputs_of(cell):
                if _is_function(cell):
                    self.functions[net], self._places[net] = cell, (port, at)
                else:
                    self.colours[net] = numbers.number(("state", port, at, self._unknown(net), starts.get(net)))
        self.sinks: dict[Any, Net] = {
            ("output", port, at): net
            for port, about in module["ports"].items()
            if about["direction"] == "output"
            for at, net in enumerate(about["bits"])
        }
        self.others: Counter[Any] = Counter()
        for cell in holding:
            about = cell["type"], str(sorted(cell["parameters"].items()))
            held = tuple(self.colours[net] for _, _, net in outputs_of(cell))
            if held:
                self.sinks |= {(about, held, at): net for at, net in enumerate(inputs_of(cell))}
            else:
                self.others[about, tuple(self.colour(net) for net in inputs_of(cell))] += 1
        for net in self.sinks.values():
            self.colour(net)

    def colour(self, net: Net) -> int:
        """Without recursion: cones are deep."""
        stack, open_ = [net], set[Net]()
        while stack:
            top = stack[-1]
            if top in self.colours:
                stack.pop()
            elif top not in self.functions:
                self.colours[top] = self._numbers.number(("undriven", self._unknown(top)))
            else:
                cell = self.functions[top]
                read = list(inputs_of(cell))
                missing = [n for n in read if n not in self.colours]
                if missing and top in open_:
                    raise LoopError
                open_.add(top)
                stack += missing
                if not missing:
                    inputs = tuple(self.colours[n] for n in read)
                    about = cell["type"], str(cell["parameters"]), self._places[top]
                    self.colours[top] = self._numbers.number((about, inputs))
        return self.colours[net]
