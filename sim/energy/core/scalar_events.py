"""Events of a lane of the scalar engine: an element through scale, bias and a function, with a table or without."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION, load_words
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import AluOp, Function
from rtl.scalar.lane import LANE_DOMAINS, PAIR, REDUCTION, Lane
from rtl.scalar.slot import OPERATION
from sim.energy.core.with_clocks import WithClocks
from sim.energy.events import CYCLES, Event, Unit
from sim.energy.simulation import Simulation
from sim.energy.values import Source, constant, packed

__all__ = ["SCALAR_WORK", "ClockedLane", "scalar_units"]

Words = NDArray[np.uint64]
SCALAR_WORK = {"plain": Function.RELU, "table": Function.GELU}
"""A function that stands for those without a table, and one for those with one."""
_ROW_WORDS = 4
_CLOCKS = ["clk"]
"""The second slot's stands still: an element of a pair is taken to cost what one alone does."""
_WARM = 16  # cycles until the last stage has seen the first element


@cache
def _tables(rows: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Directory and rows (as [row, word]) of the function that has a table."""
    words = load_words([SCALAR_WORK["table"].name.lower()], rows)
    top = 1 << 20  # LOAD's highest address bit: the directory
    directory = np.zeros(1 << 13, np.uint64)
    table = np.zeros((rows, _ROW_WORDS), np.uint64)
    for address, word in words:
        if address & top:
            directory[address & (len(directory) - 1)] = word
        else:
            table[address // _ROW_WORDS, address % _ROW_WORDS] = word
    return directory, table


def _codes(words: Words) -> NDArray[np.uint64]:
    """Of [bits, words] the number of each stream."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little").astype(np.uint64)
    return (bits << np.arange(len(bits), dtype=np.uint64)[:, None]).sum(axis=0, dtype=np.uint64)


class _Lane:
    """A simulation of a lane beside its tables, which answer in the next cycle."""

    def __init__(self, lane: Simulation, rows: int, *, reads: bool):
        self.lane, self.reads = lane, reads
        self.directory, self.table = _tables(rows)

    def cycle(self, inputs: dict[str, Words]) -> None:
        """A cycle, with what the tables gave for the addresses before it; a function without a table reads none."""
        if not self.reads:
            self.lane.cycle(inputs, _CLOCKS)
            return
        entry = self.directory[_codes(self.lane.output("entry_address0")) % len(self.directory)]
        row = self.table[_codes(self.lane.output("row_address0")) % len(self.table)]
        words = np.concatenate([packed(row[:, n], 32) for n in range(_ROW_WORDS)])
        self.lane.cycle({**inputs, "entry0": packed(entry, 32), "row0": words}, _CLOCKS)


def _event(name: str, function: Function, rows: int) -> Event:
    fp32 = constant(FORMATS["fp32"].code, 4)
    first = constant(OPERATION.const({"op": AluOp.MULTIPLY, "column": 1}).as_bits(), OPERATION.size)
    second = constant(OPERATION.const({"op": AluOp.ADD, "column": 1}).as_bits(), OPERATION.size)
    about = {"src": fp32, "dst": fp32, "first": first, "second": second, "func": constant(function, 6)}

    def drive(sims: list[Simulation], source: Source) -> None:
        lane = _Lane(sims[0], rows, reads=function >= FIRST_TABLE_FUNCTION)
        resets = ("rst", *(f"{name}_rst" for name in LANE_DOMAINS))
        lane.cycle(dict.fromkeys(resets, constant(1, 1)))
        still = dict.fromkeys(resets, constant(0, 1)) | {"reduction": constant(0, REDUCTION.size)}
        still |= dict.fromkeys(("enters", "leaves"), constant(0, PAIR.size))
        for column in ("take_a", "take_b"):
            other = {name: constant(int(name == column), 1) for name in ("take_a", "take_b")}
            lane.cycle({**still, **other, "x": source.numbers("fp32")})
        lane.cycle({"take_a": constant(0, 1), "take_b": constant(0, 1), **about})
        for _ in range(_WARM):
            lane.cycle({"x": source.numbers("fp32")})
        sims[0].toggles.clear()
        for _ in range(CYCLES):
            lane.cycle({"x": source.numbers("fp32")})

    return Event(name, "lane and element", drive)


class ClockedLane(WithClocks):
    """A lane with its clocks as ports."""

    def __init__(self) -> None:
        super().__init__(Lane(), LANE_DOMAINS)


def scalar_units(cfg: Config) -> tuple[Unit, ...]:
    """A lane of the scalar engine of a configuration."""
    rows = cfg.scalar.table_rows
    events = tuple(_event(f"scalar {name}", function, rows) for name, function in SCALAR_WORK.items())
    return (Unit(name="scalar lane", factory="sim.energy.core.scalar_events:ClockedLane", events=events),)
