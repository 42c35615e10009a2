"""The two operations whose energy others have published: FP32 addition and multiplication, without registers."""

from sim.energy.events import CYCLES, Event, Unit
from sim.energy.simulation import Simulation
from sim.energy.values import Source

__all__ = ["ADD", "MULTIPLY", "anchor_units"]

ADD, MULTIPLY = "fp32 add", "fp32 multiply"
_WORDS = 4


def _drive(sims: list[Simulation], source: Source) -> None:
    for n in range(1 + CYCLES):
        sims[0].cycle({"a": source.numbers("fp32"), "b": source.numbers("fp32")})
        if n == 0:
            sims[0].toggles.clear()


def anchor_units() -> tuple[Unit, ...]:
    """The same at every configuration."""
    factories = {
        ADD: "rtl.numeric.fp32.add_comb:Fp32AddComb",
        MULTIPLY: "rtl.numeric.fp32.multiply_comb:Fp32MultiplyComb",
    }
    return tuple(
        Unit(name=name, factory=factory, events=(Event(name, "operation", _drive),), words=_WORDS)
        for name, factory in factories.items()
    )
