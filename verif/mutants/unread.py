"""Whether a mutant sits on a bit that nobody reads.

Gates of which no output or register learns are taken away; what is left of the unit and of the mutant is then the same,
gate for gate.

Wide cells have bits that a narrower signal drops; a proof by induction over a whole unit spends minutes on such a bit.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["GATES", "same_gates"]

GATES = ("simplemap", "opt_clean -purge")
"""Commands that leave a netlist of gates, without those that nobody reads."""

_STATEFUL = ("ff", "latch", "mem", "sr_", "fsm")

_Module = Mapping[str, Any]
_Colour = int


def _names(module: _Module, known: set[str]) -> dict[int, tuple[str, int]]:
    """The first name of each net, of those known to both netlists."""
    names: dict[int, tuple[str, int]] = {}
    for name in sorted(module["netnames"].keys() & known):
        for at, net in enumerate(module["netnames"][name]["bits"]):
            names.setdefault(net, (name, at))
    return names


def _starts(module: _Module) -> dict[int, str]:
    """What registers begin with, by the net of their output."""
    starts: dict[int, str] = {}
    for about in module["netnames"].values():
        starts |= zip(about["bits"], reversed(about["attributes"].get("init", "")), strict=False)
    return starts


def _inputs(cell: _Module) -> Iterator[tuple[str, int, Any]]:
    for port, nets in sorted(cell["connections"].items()):
        if cell["port_directions"][port] != "output":
            yield from ((port, at, net) for at, net in enumerate(nets))


def _outputs(cell: _Module) -> Iterator[tuple[str, int, Any]]:
    for port, nets in sorted(cell["connections"].items()):
        if cell["port_directions"][port] == "output":
            yield from ((port, at, net) for at, net in enumerate(nets))


def _is_function(cell: _Module) -> bool:
    """Its outputs depend on its inputs alone: a cell of Yosys that has some and holds nothing."""
    kind = cell["type"].lower()
    return any(_outputs(cell)) and kind.startswith("$") and not any(word in kind for word in _STATEFUL)


class _LoopError(Exception):
    """Wide cells read each other's bits."""


class _Colours:
    """Nets of both netlists: the same colour is the same function of inputs and registers of the same names."""

    def __init__(self) -> None:
        self._numbers: dict[Any, _Colour] = {}

    def number(self, what: Any) -> _Colour:
        return self._numbers.setdefault(what, len(self._numbers))

    def of(self, module: _Module, known: set[str]) -> tuple[Any, ...]:
        """What the outputs and the inputs of registers and placed cells are."""
        own = len(self._numbers)  # a net without a name is like none of the other netlist
        names, starts = _names(module, known), _starts(module)
        colours: dict[Any, _Colour] = {bit: self.number(("constant", bit)) for bit in "01xz"}
        for port, about in module["ports"].items():
            for at, net in enumerate(about["bits"]):
                if about["direction"] != "output":
                    colours[net] = self.number(("input", port, at))
        functions: dict[Any, tuple[_Module, str, int]] = {}
        kept: list[_Module] = []
        for cell in module["cells"].values():
            if not _is_function(cell):
                kept.append(cell)
            for port, at, net in _outputs(cell):
                if _is_function(cell):
                    functions[net] = cell, port, at
                else:
                    colours[net] = self.number(("state", port, at, names.get(net, (own, net)), starts.get(net)))

        def colour(net: Any) -> _Colour:
            stack, open_ = [net], set[Any]()
            while stack:
                top = stack[-1]
                if top in colours:
                    stack.pop()
                elif top not in functions:
                    colours[top] = self.number(("undriven", names.get(top, (own, top))))
                else:
                    cell, port, at = functions[top]
                    read = [n for _, _, n in _inputs(cell)]
                    missing = [n for n in read if n not in colours]
                    if missing and top in open_:
                        raise _LoopError
                    open_.add(top)
                    stack += missing
                    if not missing:
                        inputs = tuple(colours[n] for n in read)
                        colours[top] = self.number((cell["type"], str(cell["parameters"]), port, at, inputs))
            return colours[net]

        outputs = [
            (port, tuple(colour(net) for net in about["bits"]))
            for port, about in sorted(module["ports"].items())
            if about["direction"] == "output"
        ]
        states = [
            (
                tuple(colours[net] for _, _, net in _outputs(cell)),
                (cell["type"], str(sorted(cell["parameters"].items()))),
                tuple(colour(net) for _, _, net in _inputs(cell)),
            )
            for cell in kept
        ]
        return (tuple(outputs), tuple(sorted(states)))


def same_gates(netlists: str) -> bool:
    """Of Yosys' JSON with modules `whole` and `changed`, after GATES. False may say that it cannot be seen."""
    modules = json.loads(netlists)["modules"]
    whole, changed = modules["whole"], modules["changed"]
    known = whole["netnames"].keys() & changed["netnames"].keys()
    colours = _Colours()
    try:
        return colours.of(whole, known) == colours.of(changed, known)
    except _LoopError:
        return False
