"""Events of a lane of the vector engine: a beat of one or four elements, by what the lane does with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import AluOp
from rtl.vector.lane import ENTERING, LANE_DOMAINS, Lane
from rtl.vector.operators import OPERATION
from rtl.vector.sums import RESULT_FROM, SLOTS, SUMMING
from rtl.vector.timetable import LEAVING
from sim.energy.core.with_clocks import WithClocks
from sim.energy.events import CYCLES, Event, Unit
from sim.energy.simulation import Simulation
from sim.energy.values import Source, constant

__all__ = ["VECTOR_WORK", "ClockedLane", "vector_name", "vector_units"]

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Work:
    """Parts whose clocks run, as Timetable says, and what they are told. `computed`: the operators' result goes out."""

    maths: bool = True
    wide: bool = True  # maths of all slots but the first, if a beat has so many elements
    sums: bool = False
    computed: bool = True
    operation: Mapping[str, int] = field(default_factory=dict)


_ADD, _BYPASS = int(AluOp.ADD), int(AluOp.BYPASS)
VECTOR_WORK = {
    "copy": _Work(maths=False, computed=False),
    "add": _Work(operation={"op0": _ADD, "op1": _BYPASS, "go": 1}),
    "multiply": _Work(operation={"op0": int(AluOp.MULTIPLY), "op1": _BYPASS, "go": 1}),
    "multiply add": _Work(operation={"op0": int(AluOp.MULTIPLY), "op1": _ADD, "go": 1}),
    "compare": _Work(operation={"op0": int(AluOp.MAX), "op1": _BYPASS, "go": 1}),
    "exp": _Work(operation={"exp": 1}),
    "exp and sum": _Work(sums=True, operation={"exp": 1}),
    "sum": _Work(wide=False, sums=True),
}
"""What a lane does with an element."""
_WARM = 8  # cycles until the last stage has seen the first element


def vector_name(work: str, width: int) -> str:
    """Of the event, as in "vector add x4"."""
    return f"vector {work} x{width}"


def _bits(layout: Any, value: Any) -> Words:
    return constant(layout.const(value).as_bits(), layout.size)


def _controls(work: _Work, width: int, fmt: str) -> dict[str, Words]:
    """What all lanes are told, the same in every cycle; columns a and b are kept from `prepare`."""
    size = FORMATS[fmt].bytes
    entering = [{"at": size * j if j < width else 0, "src": FORMATS[fmt].code} for j in range(SLOTS)]
    leaving = {"computed": int(work.computed), "dst": FORMATS[fmt].code}
    summing = {"op": _ADD, "valid": (1 << width) - 1 if work.sums else 0, "results": int("exp" in work.operation)}
    return {
        "entering": np.concatenate([_bits(ENTERING, one) for one in entering]),
        "leaving": np.concatenate([_bits(LEAVING, leaving)] * 2),
        "operation": np.concatenate([_bits(OPERATION, dict(work.operation))] * 2),
        "summing": _bits(SUMMING, summing),
        "result": constant(RESULT_FROM["operators"], 2),
        "bytes_log2": constant(size.bit_length() - 1, 2),
        "width": constant(width.bit_length() - 1, 2),
        "mine": constant(1, 1),
    }


def _clocks(work: _Work, width: int) -> list[str]:
    parts = {"convert": True, "convert_wide": width > 1, "maths": work.maths, "sums": work.sums}
    parts["maths_wide"] = work.maths and work.wide and width > 1
    return [f"vector_{name}_clk" for name, runs in parts.items() if runs]


def _event(name: str, work: _Work, width: int) -> Event:
    fmt = "bf16" if width > 1 else "fp32"

    def drive(sims: list[Simulation], source: Source) -> None:
        (lane,) = sims
        every = list(lane.registers)
        resets = [clock.replace("clk", "rst") for clock in every]
        lane.cycle({reset: constant(1, 1) for reset in resets})
        keep = {"op0": _BYPASS, "op1": _BYPASS, "keep_a": 1, "keep_b": 1}
        columns = _controls(_Work(operation=keep), 1, "fp32")
        quiet = {reset: constant(0, 1) for reset in resets}
        for _ in range(3):  # a and b become numbers
            lane.cycle({**quiet, **columns, "word": source.word("fp32")}, every)
        controls, clocks = _controls(work, width, fmt), _clocks(work, width)
        position = 0

        def step() -> None:
            nonlocal position
            summing = controls["summing"].copy()
            if work.sums:
                at = SUMMING["position"]
                summing[at.offset : at.offset + at.width] = constant(position, at.width)
                position = (position + width) % (1 << at.width)
            lane.cycle({**controls, "summing": summing, "word": source.word(fmt)}, clocks)

        for _ in range(_WARM):
            step()
        lane.toggles.clear()
        for _ in range(CYCLES):
            step()

    return Event(name, "lane and beat", drive)


class ClockedLane(WithClocks):
    """A lane with its clocks as ports."""

    def __init__(self, exp_rate: int):
        super().__init__(Lane(exp_rate), LANE_DOMAINS)


def vector_units(cfg: Config) -> tuple[Unit, ...]:
    """A lane of the vector engine of a configuration."""
    widths = {name: {1, cfg.vector.exp_rate if "exp" in name else 4} for name in VECTOR_WORK}
    events = [
        _event(vector_name(name, width), work, width)
        for name, work in VECTOR_WORK.items()
        for width in sorted(widths[name] - ({4} if name == "sum" else set()) | ({2} if name == "sum" else set()))
    ]
    options = {"exp_rate": cfg.vector.exp_rate}
    return (
        Unit(
            name="vector lane",
            factory="sim.energy.core.vector_events:ClockedLane",
            options=options,
            events=tuple(events),
        ),
    )
