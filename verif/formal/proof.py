"""What a proof is: a component full of Assert, Assume and Cover, and the faults it must find."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Assume, Module, ResetSignal
from amaranth.lib import wiring

__all__ = ["Proof", "without_reset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Properties of one unit, held together by what `make` makes.

    The inputs of the component are free in every cycle. Its assertions are proved for all time by
    k-induction of `depth` cycles, its covers reached within `cover_depth`; with each fault of `faults`
    the assertions must fail within `fault_depth` cycles from the initial state. `engine` is what proves:
    "abc pdr" finds its own invariants and needs no depth, for units whose inside the proof cannot see.
    `states`: the assertions are also looked at in every state that can be reached, cycle by cycle until none is new;
    for units of a few hundred thousand states. `sources`: files of rtl/cells that it places. `short`: all its tasks
    together take a few seconds of one processor, so that they are part of `make test`.
    """

    name: str
    make: Callable[[], wiring.Component]
    depth: int
    cover_depth: int
    fault_depth: int = 20
    engine: str = "smtbmc bitwuzla"
    states: bool = False
    short: bool = False
    faults: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def without_reset(m: Module) -> None:
    """The proof starts from the initial state; no reset comes later."""
    m.d.comb += Assume(~ResetSignal())
