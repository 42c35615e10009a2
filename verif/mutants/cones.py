"""What of a mutant differs from the unit, gate by gate, and a proof of no more than that.

Outputs and inputs of registers that both netlists make alike need no proof. Of the others, the gates in front are
written out as far as registers and inputs, or as far as a few levels in front of what differs, with free inputs where
both netlists have the same function. A solver then sees a few gates of a unit of any size. Registers begin alike; if
they are the same function of the same registers and inputs, nothing that leaves the unit ever differs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verif.mutants.gates import Colours, Gates, LoopError, Net, inputs_of, outputs_of

__all__ = ["CUTS", "Cones", "cones_of", "miter", "proof"]

CUTS = (0, 6, 24, None)
"""How many gates in front of those that differ a solver sees; None: all, to registers and inputs. The easiest first."""
_MULTIPLIERS = ("$mul", "$macc", "$macc_v2", "$div", "$mod", "$pow")


class Cones:
    """Both netlists and the pairs of nets that differ."""

    def __init__(self, whole: Gates, changed: Gates):
        self.whole, self.changed = whole, changed
        self.pairs = [
            (net, changed.sinks[reader])
            for reader, net in whole.sinks.items()
            if whole.colours[net] != changed.colours[changed.sinks[reader]]
        ]


def cones_of(netlists: str) -> Cones | None:
    """Of Yosys's JSON with modules `whole` and `changed`, after GATES; None where they have not the same registers."""
    modules = json.loads(netlists)["modules"]
    whole, changed = modules["whole"], modules["changed"]
    known = whole["netnames"].keys() & changed["netnames"].keys()
    numbers = Colours()
    try:
        gates = Gates(whole, known, numbers), Gates(changed, known, numbers)
    except LoopError:
        return None
    alike = gates[0].sinks.keys() == gates[1].sinks.keys() and gates[0].others == gates[1].others
    return Cones(*gates) if alike else None


class _Cut:
    """Gates in front of some nets, for Yosys's JSON. `free`: colours at which it ends, too. `ends`: where it did."""

    def __init__(self, gates: Gates, free: set[int]):
        self._gates, self._free = gates, free
        self._bits: dict[Any, int] = {}
        self._cells: dict[int, dict[str, Any]] = {}
        self.ends: set[int] = set()

    def _number(self, what: Any) -> int:
        return self._bits.setdefault(what, len(self._bits) + 2)

    def _is_inside(self, net: Net) -> bool:
        """A gate drives it, and somebody reads it."""
        colour = self._gates.colours.get(net)
        return net in self._gates.functions and colour is not None and colour not in self._free

    def _bit(self, net: Net) -> Net:
        if isinstance(net, str):
            return net
        return self._number(net if self._is_inside(net) else ("end", self._gates.colours[net]))

    def _placed(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """The gate. It does not drive bits at which the cut ends."""
        driven: dict[str, list[Net]] = {}
        for port, at, net in outputs_of(cell):
            inside = self._is_inside(net)
            driven.setdefault(port, []).append(self._number(net if inside else ("open", id(cell), port, at)))
        read = {port: [self._bit(n) for n in nets] for port, nets in cell["connections"].items() if port not in driven}
        return {**cell, "hide_name": 0, "attributes": {}, "connections": driven | read}

    def add(self, net: Net) -> None:
        """The gates in front of a net."""
        stack = [net]
        while stack:
            top = stack.pop()
            if isinstance(top, str):
                continue
            if not self._is_inside(top):
                self.ends.add(self._gates.colours[top])
            elif id(cell := self._gates.functions[top]) not in self._cells:
                self._cells[id(cell)] = self._placed(cell)
                stack += inputs_of(cell)

    def module(self, nets: Sequence[Net], ends: set[int]) -> dict[str, Any]:
        """With outputs of the nets and inputs for all `ends`."""
        inputs = {f"i{c}": {"direction": "input", "bits": [self._number(("end", c))]} for c in sorted(ends)}
        outputs = {f"o{k}": {"direction": "output", "bits": [self._bit(net)]} for k, net in enumerate(nets)}
        cells = {f"g{number}": cell for number, cell in enumerate(self._cells.values())}
        return {"attributes": {}, "ports": inputs | outputs, "cells": cells, "netnames": {}}


def _edge(gates: Gates, nets: Iterable[Net], shared: set[int]) -> set[Net]:
    """Shared nets that the gates in front of `nets` read which are not shared."""
    stack, seen = list(nets), set[Net]()
    while stack:
        net = stack.pop()
        if net not in seen:
            seen.add(net)
            if net in gates.functions and gates.colours[net] not in shared:
                stack += inputs_of(gates.functions[net])
    return {net for net in seen if gates.colours[net] in shared}


def _free(cones: Cones, levels: int | None) -> set[int]:
    """Functions of both netlists that count as free inputs; a multiplier is looked into with all levels only."""
    if levels is None:
        return set()
    gates = cones.whole
    shared = set(gates.colours.values()) & set(cones.changed.colours.values())
    edge = _edge(gates, (net for net, _ in cones.pairs), shared)
    near: set[int] = set()
    for _ in range(levels):
        cells = {net: gates.functions[net] for net in edge if net in gates.functions}
        easy = {net: cell for net, cell in cells.items() if cell["type"] not in _MULTIPLIERS}
        near |= {gates.colours[net] for net in easy}
        edge = {net for cell in easy.values() for net in inputs_of(cell)}
    return shared - near


def miter(cones: Cones, levels: int | None) -> str:
    """Yosys's JSON of modules `whole` and `changed` with the gates in front of what differs. `levels`: of CUTS."""
    free = _free(cones, levels)
    whole, changed = _Cut(cones.whole, free), _Cut(cones.changed, free)
    for net, other in cones.pairs:
        whole.add(net)
        changed.add(other)
    ends = whole.ends | changed.ends
    nets, others = zip(*cones.pairs)
    modules = {"whole": whole.module(nets, ends), "changed": changed.module(others, ends)}
    return json.dumps({"creator": "", "modules": modules})


def proof(limit_seconds: float) -> list[str]:
    """Commands that fail unless the modules of a miter do the same."""
    return [
        "miter -equiv -flatten whole changed both",
        f"sat -verify -prove trigger 0 -timeout {int(limit_seconds)} both",
    ]
