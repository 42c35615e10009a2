"""Gates at work: 64 streams in every word of every net at once, and how often each cell switches.

Every net is a row of words with a bit a stream, so a gate of two inputs is one operation of NumPy on many streams, and
all gates of a kind at one depth are one operation together. Nothing is compiled.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.area.cells import AREA_GE
from sim.energy.gates import Gates
from sim.errors import PlexusError

__all__ = ["CLOCK_GE", "DATA_GE", "STREAMS", "Simulation", "Toggles"]

Words = NDArray[np.uint64]
STREAMS = 64
"""In a word."""
CLOCK_GE = AREA_GE["DFF"] / 2
"""Of a flip-flop, what hangs on its clock: 12 of the 24 transistors of the usual circuit. It switches twice a cycle."""
DATA_GE = AREA_GE["DFF"] - CLOCK_GE
"""The others switch when its contents change."""


class Toggles:
    """Weighted toggles of all cycles and streams since `clear`, in gate equivalents."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.weighted = 0.0
        self.cycles = self.streams = self.written = 0

    @property
    def each(self) -> float:
        """Of a cycle of a stream."""
        return self.weighted / (self.cycles * self.streams) if self.cycles else 0.0

    @property
    def registers(self) -> float:
        """Flip-flops that take something new in a cycle: in any stream, for what one keeps another one may take."""
        return self.written / self.cycles if self.cycles else 0.0


def _operate(kind: str, x: list[Words]) -> Words:
    match kind:
        case "INV":
            return ~x[0]
        case "NAND2":
            return ~(x[0] & x[1])
        case "NOR2":
            return ~(x[0] | x[1])
        case "AND2":
            return x[0] & x[1]
        case "OR2":
            return x[0] | x[1]
        case "XOR2":
            return x[0] ^ x[1]
        case "XNOR2":
            return ~(x[0] ^ x[1])
        case "MUX2":  # A, B, S
            return x[0] ^ ((x[0] ^ x[1]) & x[2])
    raise PlexusError(f"{kind} is no gate of cells.lib")


class _Group:
    """Gates of one kind at one depth: their outputs are neighbours."""

    def __init__(self, kind: str, cells: Sequence[tuple[list[int], int]], first: int):
        self.kind = kind
        self.outputs = slice(first, first + len(cells))
        self.inputs = [np.array(pins, np.intp) for pins in zip(*(pins for pins, _ in cells), strict=True)]


def _by_depth(gates: Gates) -> dict[tuple[int, str], list[tuple[list[int], int]]]:
    """Cells by depth and kind. Errors: PlexusError for a loop."""
    driver = {out: n for n, (_, _, out) in enumerate(gates.cells)}
    waits = [0] * len(gates.cells)
    readers: dict[int, list[int]] = defaultdict(list)
    for n, (_, pins, _) in enumerate(gates.cells):
        for net in pins:
            if net in driver:
                waits[n] += 1
                readers[driver[net]].append(n)
    found: dict[tuple[int, str], list[tuple[list[int], int]]] = defaultdict(list)
    ready = [n for n, count in enumerate(waits) if not count]
    depth = done = 0
    while ready:
        after: list[int] = []
        for n in ready:
            kind, pins, out = gates.cells[n]
            found[depth, kind].append((pins, out))
            for reader in readers[n]:
                waits[reader] -= 1
                if not waits[reader]:
                    after.append(reader)
        done += len(ready)
        ready, depth = after, depth + 1
    if done < len(gates.cells):
        raise PlexusError("the gates have a loop without a register in it")
    return found


class Simulation:
    """`words` * 64 streams through one netlist; registers begin as they are described, inputs at 0.

    `toggles`: between the values that nets have at the ends of cycles; what a net does before it settles is not seen.
    """

    def __init__(self, gates: Gates, words: int = 1):
        self.gates = gates
        self.toggles = Toggles()
        groups = _by_depth(gates)
        place = {0: 0, 1: 1}  # of a net among the values
        for nets in gates.inputs.values():
            for net in nets:
                place.setdefault(net, len(place))
        first = len(place)
        for _, q, _ in gates.registers:
            place.setdefault(q, len(place))
        self._registers = slice(first, len(place))
        for (_, _), cells in sorted(groups.items()):
            for _, out in cells:
                place[out] = len(place)
        for net in range(gates.nets):
            place.setdefault(net, len(place))
        self._place = place
        self._groups: list[_Group] = []
        weights = np.zeros(len(place))
        for (_, kind), cells in sorted(groups.items()):
            moved = [([place[n] for n in pins], place[out]) for pins, out in cells]
            group = _Group(kind, moved, moved[0][1])
            weights[group.outputs] = AREA_GE[kind]
            self._groups.append(group)
        for _, q, _ in gates.registers:
            weights[place[q]] = DATA_GE
        self._weights = weights
        self._ones = [1, *(place[net] for net in gates.initial)]
        self._values: Words = np.zeros((len(place), words), np.uint64)
        clocks: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for d, q, clock in gates.registers:
            clocks[clock].append((place[d], place[q]))
        names = {nets[0]: port for port, nets in gates.inputs.items() if len(nets) == 1}
        missing = [clock for clock in clocks if clock not in names]
        if missing:
            raise PlexusError("a clock is made inside the unit, so its registers' cycles are not known")
        self._clocks = {names[clock]: np.array(pairs, np.intp).T for clock, pairs in clocks.items()}
        self.restart()

    def restart(self) -> None:
        """As in the beginning; nothing is counted yet."""
        self._values[:] = 0
        self._values[self._ones] = ~np.uint64(0)
        self._settle()
        self.toggles.clear()

    @property
    def registers(self) -> dict[str, int]:
        """Flip-flops by the port that is their clock."""
        return {name: len(pairs[0]) for name, pairs in self._clocks.items()}

    def output(self, port: str) -> Words:
        """Of an output: [bits, words], lowest bit first."""
        return self._values[[self._place[net] for net in self.gates.outputs[port]]]

    def _settle(self) -> None:
        values = self._values
        for group in self._groups:
            values[group.outputs] = _operate(group.kind, [values[pins] for pins in group.inputs])

    def cycle(self, inputs: Mapping[str, Words], clocks: Sequence[str] | None = None) -> None:
        """One cycle: it begins with an edge of all clocks, or of some, and new inputs [bits, words]; others stay.

        Errors: PlexusError for an input that there is not.
        """
        before = self._values.copy()
        for port, bits in inputs.items():
            if port not in self.gates.inputs:
                raise PlexusError(f"the unit has no input {port!r}; it has {', '.join(self.gates.inputs)}")
            self._values[[self._place[net] for net in self.gates.inputs[port]]] = bits
        for name, (d, q) in self._clocks.items():
            if clocks is None or name in clocks:
                self._values[q] = before[d]
        self._settle()
        changed = self._values ^ before
        toggles = self.toggles
        toggles.weighted += float(np.bitwise_count(changed).sum(axis=1, dtype=np.int64) @ self._weights)
        toggles.written += int(np.count_nonzero(changed[self._registers].any(axis=1)))
        toggles.cycles += 1
        toggles.streams = self._values.shape[1] * STREAMS
