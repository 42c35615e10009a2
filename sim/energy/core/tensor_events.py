"""Events of the tensor engine: a beat in a processing element by kind, a load, a sum that passes; a row at the edge."""

from collections.abc import Iterator
from itertools import repeat

import numpy as np
from amaranth.hdl import Shape
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.kinds import DOTS, Kind, kinds_of
from rtl.numeric.pe.pe_operand import pe_operand
from rtl.tensor.lanes import NUMBERS, OPERAND_BITS, moving_lane, weight_bits, weight_lane
from sim.energy.core.edge_lanes import EdgeLanes
from sim.energy.events import CYCLES, Event, Unit
from sim.energy.simulation import Simulation
from sim.energy.values import Source, constant

__all__ = ["FORMATS_OF_KINDS", "Element", "beat_name", "tensor_units"]

Words = NDArray[np.uint64]
FORMATS_OF_KINDS: dict[Kind, tuple[str, ...]] = {
    Kind.ONE: ("bf16", "fp16", "tf32", "e4m3fn"),
    Kind.PAIR: ("e4m3fn",),
    Kind.QUAD: ("e4m3fn", "e2m1"),
    Kind.QUAD_E4M3: ("e2m1",),
    Kind.HIGH: ("fp32",),
    Kind.LOW: ("fp32",),
    Kind.SPARSE: ("bf16",),
}
"""That are measured; any other format that a kind takes costs what its first one does, FP8 numbers what e4m3fn does."""
_PARTIAL = 4.0  # standard deviation of sums from above, of products of numbers of variance 1
_VALID = 2  # of a weight lane, behind its bits: not raw, valid, no shift
_WORDS = 4


def beat_name(kind: Kind, fmt: str) -> str:
    """Of the event, as in "beat one bf16"."""
    formats = FORMATS_OF_KINDS[kind]
    known = fmt if fmt in formats else "e4m3fn" if fmt in ("e4m3", "e5m2") else formats[0]
    return f"beat {kind.name.lower()} {known}"


class Element:
    """Drives a simulation of a PE with lanes of one kind."""

    def __init__(self, cfg: Config, sims: list[Simulation], source: Source, kind: Kind, fmt: str):
        self.pe, unpack = sims
        self.source, self.kind = source, kind
        self.lanes = EdgeLanes(unpack, source, kind, fmt)
        self.moving, self.stationary = moving_lane(cfg.tensor), weight_lane(cfg.tensor)
        self.operand_bits = Shape.cast(pe_operand(cfg.tensor.mx)).width
        self.weight_bits = weight_bits(cfg.tensor)

    def flags(self, *, use: bool, swap: bool = False) -> int:
        """A moving lane without its operand."""
        on = {"use": use, "swap": swap, "dot": self.kind in DOTS}
        on |= {"scale_e4m3": self.kind == Kind.QUAD_E4M3, "sparse": self.kind == Kind.SPARSE}
        return sum(on[name] << field.offset for name, field in self.moving if name in on)

    def beat(self, *, swap: bool = False) -> dict[str, Words]:
        """Inputs of a beat: an operand, a partial sum from above."""
        lane = self.lanes.one()[: self.operand_bits]
        rest = constant(self.flags(use=True, swap=swap), self.moving.size)[self.operand_bits :]
        west = np.concatenate([lane, rest.repeat(lane.shape[1], axis=1)])
        others = [self.lanes.one()[:OPERAND_BITS] for _ in range(NUMBERS - 1)] if self.kind == Kind.SPARSE else []
        return {"west": west, **self.sum(), **({"west_others": np.concatenate(others)} if others else {})}

    def sum(self) -> dict[str, Words]:
        """A partial sum alone."""
        return {"north": self.source.numbers("fp32", _PARTIAL)}

    def load(self) -> dict[str, Words]:
        """A weight."""
        bits = self.lanes.one()
        if self.kind == Kind.SPARSE:
            slot = self.source.below(NUMBERS, self.weight_bits - OPERAND_BITS)
            bits = np.concatenate([bits[:OPERAND_BITS], slot])
        return {"west_weight": np.concatenate([bits, constant(_VALID, 3).repeat(bits.shape[1], axis=1)])}

    def no_load(self) -> dict[str, Words]:
        """No weight."""
        return {"west_weight": constant(0, self.stationary.size)}

    def prepare(self) -> None:
        """Reset, a weight, a beat that takes it, and two more."""
        for inputs in ({"rst": constant(1, 1)}, {"rst": constant(0, 1)}, self.load()):
            self.pe.cycle(inputs)
        self.pe.cycle({**self.no_load(), **self.beat(swap=True)})
        for _ in range(2):
            self.pe.cycle(self.beat())


def _pe_events(cfg: Config) -> Iterator[Event]:
    def event(kind: Kind, fmt: str, name: str) -> Event:
        def drive(sims: list[Simulation], source: Source) -> None:
            element = Element(cfg, sims, source, kind, fmt)
            element.prepare()
            make = {"load": element.load, "pass": element.sum}.get(name, element.beat)
            still = {"west": constant(element.flags(use=False), element.moving.size)}
            element.pe.cycle({**({} if make == element.beat else still), **make()})
            element.pe.toggles.clear()
            for _ in repeat(None, CYCLES):
                element.pe.cycle(make())

        return Event(name, "PE and column" if name == "load" else "PE and beat", drive)

    for kind, formats in FORMATS_OF_KINDS.items():
        if kind in kinds_of(cfg.tensor):
            yield from (event(kind, fmt, beat_name(kind, fmt)) for fmt in formats)
    yield event(Kind.ONE, "bf16", "load")
    yield event(Kind.ONE, "bf16", "pass")


def _edge_events(cfg: Config) -> Iterator[Event]:
    def event(kind: Kind, fmt: str) -> Event:
        def drive(sims: list[Simulation], source: Source) -> None:
            lanes = EdgeLanes(sims[0], source, kind, fmt)
            lanes.one()
            sims[0].toggles.clear()
            for _ in range(CYCLES):
                lanes.one()

        return Event(beat_name(kind, fmt).replace("beat", "unpack"), "row and beat", drive)

    for kind, formats in FORMATS_OF_KINDS.items():
        if kind in kinds_of(cfg.tensor):
            yield from (event(kind, fmt) for fmt in formats)


def _add_event(name: str, *, old: bool) -> Event:
    def drive(sims: list[Simulation], source: Source) -> None:
        (adder,) = sims
        fixed = {} if old else {"a": constant(1 << 31, 32)}  # -0, to which nothing is added

        def step() -> None:
            new = {"a": source.numbers("fp32", _PARTIAL)} if old else fixed
            adder.cycle({**new, "b": source.numbers("fp32", _PARTIAL)})

        for _ in range(3):
            step()
        adder.toggles.clear()
        for _ in range(CYCLES):
            step()

    return Event(name, "column and beat", drive)


def tensor_units(cfg: Config) -> tuple[Unit, ...]:
    """Of the array of a configuration and of the adders of PSUM."""
    edge = Unit(
        name="unpack",
        factory="rtl.tensor.unpack_lane:UnpackLane",
        options={"tensor": cfg.tensor},
        events=tuple(_edge_events(cfg)),
        words=_WORDS,
    )
    pe = Unit(
        name="pe", factory="rtl.tensor.pe:PE", cfg=cfg, events=tuple(_pe_events(cfg)), beside=(edge,), words=_WORDS
    )
    adder = Unit(
        name="psum adder",
        factory="rtl.numeric.fp32.add_pipelined:Fp32AddPipelined",
        events=(_add_event("psum add", old=True), _add_event("psum write", old=False)),
        words=_WORDS,
    )
    return edge, pe, adder
