"""A whole unit, with all that is placed inside it, as gates between nets that are numbered through."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.energy.cell_netlist import CellNetlist
from sim.errors import PlexusError

__all__ = ["Gates", "flat"]


@dataclass(slots=True, kw_only=True)
class Gates:
    """Net 0 is always 0, net 1 always 1. `inputs` and `outputs`: nets by port, lowest bit first; `cells`: kind, inputs,
    output; `registers`: D, Q, clock, where a clock is an input; `initial`: nets of registers that begin at 1."""

    nets: int = 2
    inputs: dict[str, list[int]] = field(default_factory=dict)
    outputs: dict[str, list[int]] = field(default_factory=dict)
    cells: list[tuple[str, list[int], int]] = field(default_factory=list)
    registers: list[tuple[int, int, int]] = field(default_factory=list)
    initial: list[int] = field(default_factory=list)

    def new(self) -> int:
        """A net."""
        self.nets += 1
        return self.nets - 1


class _Flattener:
    """Places units inside one another; a port of a unit inside is a wire, not a gate."""

    def __init__(self, units: Mapping[str, CellNetlist]):
        self.units = units
        self.gates = Gates()
        self.same: dict[int, int] = {}  # net of a parent: the net inside that drives it

    def place(self, name: str, known: dict[int, int]) -> dict[int, int]:
        """Add a unit whose nets `known` exist. Returns all its nets. Errors: PlexusError for a cell that is no gate."""
        unit, gates = self.units.get(name), self.gates
        if unit is None:
            raise PlexusError(f"{name} is no unit of gates, so its toggles cannot be counted")
        known = {0: 0, 1: 1, **known}

        def net(n: int) -> int:
            if n not in known:
                known[n] = gates.new()
            return known[n]

        gates.cells += [(kind, [net(n) for n in pins], net(out)) for kind, pins, out in unit.cells]
        gates.registers += [(net(d), net(q), net(clock)) for d, q, clock in unit.registers]
        gates.initial += [net(n) for n in unit.initial]
        for module, pins in unit.boxes:
            inside = self.units.get(module)
            if inside is None:
                raise PlexusError(f"{name} places {module}, which is no unit of gates")
            given: dict[int, int] = {}
            leaves: list[tuple[int, int]] = []
            for port, (way, bits) in inside.ports.items():
                outer = pins.get(port, [])
                if way == "input":
                    given |= {n: net(of) for n, of in zip(bits, outer, strict=False)}
                else:
                    leaves += zip(bits, (net(n) for n in outer), strict=False)
            its = self.place(module, given)
            self.same |= {outer: its[n] if n > 1 else n for n, outer in leaves}
        for _, bits in unit.ports.values():
            for n in bits:
                net(n)
        return known

    def root(self, net: int) -> int:
        """The net that drives this one."""
        while net in self.same:
            net = self.same[net]
        return net


def flat(units: Mapping[str, CellNetlist], top: str) -> Gates:
    """The gates of `top`; `units` has all that it places, by name of module. Errors: PlexusError for a cell that is no
    gate, as a RAM."""
    maker = _Flattener(units)
    known = maker.place(top, {})
    gates, root = maker.gates, maker.root
    gates.cells = [(kind, [root(n) for n in pins], out) for kind, pins, out in gates.cells]
    gates.registers = [(root(d), q, root(clock)) for d, q, clock in gates.registers]
    for port, (way, bits) in units[top].ports.items():
        (gates.inputs if way == "input" else gates.outputs)[port] = [root(known.get(n, n)) for n in bits]
    return gates
