"""Free inputs, parts that stand in for large ones, and a RAM of which the proof follows one row."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from amaranth.asserts import AnySeq
from amaranth.hdl import Elaboratable, Fragment, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.amaranth_internals import counts_as_used
from rtl.base.fifo import Fifo

__all__ = ["FollowedRam", "NoRam", "StandIn", "drive", "fifo_sound", "ports", "power_of_two"]


def drive(m: Module, signal: ValueLike) -> None:
    """Let the prover choose a signal in every cycle."""
    value = Value.cast(signal)
    m.d.comb += value.eq(AnySeq(len(value)))


def ports(unit: wiring.Component) -> Iterator[tuple[str, wiring.Member, Any]]:
    """Members of a unit with their interfaces; those of an array one by one."""
    for name, member in unit.signature.members.items():
        port = getattr(unit, name)
        if not member.dimensions:
            yield name, member, port
            continue
        (count,) = member.dimensions
        for n in range(count):
            yield f"{name}{n}", member, port[n]


def fifo_sound(fifo: Fifo) -> Value:
    """What an induction must know of a FIFO: its pointers are as far apart as its level says."""
    far = fifo.read + fifo.level
    apart = fifo.write == Mux(far >= fifo.depth, far - fifo.depth, far)
    return (fifo.read < fifo.depth) & (fifo.write < fifo.depth) & (fifo.level <= fifo.depth) & apart


def power_of_two(number: Value) -> Value:
    """Whether one bit of it is set."""
    return (number != 0) & (number & (number - 1) == 0)


class StandIn(Elaboratable):
    """A unit in which the names `parts` of its module, classes of parts, mean others: simpler, and able to do more.

    A name with dots is that of another module. `elaborate` may be called early, to have the parts at hand.
    """

    def __init__(self, unit: wiring.Component, **parts: Callable[..., Elaboratable]):
        self.unit = unit
        room = type(unit).__module__
        self.parts = {name if "." in name else f"{room}.{name}": part for name, part in parts.items()}

    def elaborate(self, platform: object) -> Fragment:
        counts_as_used(self)
        replaced = [patch(name, part) for name, part in self.parts.items()]
        for each in replaced:
            each.start()
        try:
            return Fragment.get(self.unit, platform)
        finally:
            for each in replaced:
                each.stop()


class NoRam(wiring.Component):
    """The ports of a Ram (rtl.base.ram); what it reads is 0, for units whose promises do not depend on it."""

    def __init__(self, width: int, depth: int, granule: int = 0):
        granule = granule or width
        self.granule = granule
        super().__init__(
            {
                "read_en": In(1),
                "read_address": In(ceil_log2(depth)),
                "read_data": Out(width),
                "write_en": In(1),
                "write_address": In(ceil_log2(depth)),
                "write_mask": In(width // granule),
                "write_data": In(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        return Module()


class FollowedRam(NoRam):
    """A Ram that keeps the row `followed` only: any other one reads as anything."""

    def __init__(self, width: int, depth: int, granule: int = 0, *, followed: Value):
        self.followed = followed
        self.kept = Signal(width)
        super().__init__(width, depth, granule)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.read_en):
            here = self.read_address == self.followed
            m.d.sync += self.read_data.eq(Mux(here, self.kept, AnySeq(len(self.kept))))
        with m.If(self.write_en & (self.write_address == self.followed)):
            for n in range(len(self.write_mask)):
                at = slice(n * self.granule, (n + 1) * self.granule)
                with m.If(self.write_mask[n]):
                    m.d.sync += self.kept[at].eq(self.write_data[at])
        return m
