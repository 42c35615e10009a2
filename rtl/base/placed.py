"""Describe once, place many times: a component that becomes a Verilog module of its own.

Amaranth elaborates every submodule anew (72 ms for a PE), so what is repeated (PE tiles, lanes) is
converted once and placed by Instance. `Placed` looks like the component it stands for; the emitter
collects what was placed. Amaranth's own simulator cannot look inside an Instance and reads its
outputs as 0: test such designs in Verilator.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from amaranth.hdl import ClockSignal, Const, Instance, Module, ResetSignal, Shape, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.amaranth_internals import counts_as_used

__all__ = ["Collected", "Placed", "Repeated", "Repetition", "collecting", "needs_source"]


@dataclass(frozen=True, slots=True)
class Repetition:
    """Lanes that all do the same: `factory` makes one, ports in `shared` are common to all `count` of them.

    `domains`: clock domains of the lane that are its clock, let through by an enable.
    """

    factory: Callable[[], wiring.Component]
    count: int
    shared: frozenset[str]
    domains: tuple[str, ...]


class Collected:
    """What a conversion has met: components to convert as modules, and source files to add."""

    def __init__(self) -> None:
        self.modules: dict[str, Callable[[], wiring.Component]] = {}
        self.lanes: dict[str, Repetition] = {}
        self.sources: set[str] = set()
        self.hier_blocks: set[str] = set()


_collected: ContextVar[Collected | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[Collected]:
    """Collect what is placed while the body converts a design."""
    collected = Collected()
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def needs_source(*names: str) -> None:
    """Say that the design being converted needs these files of rtl/cells (.sv, .cpp, .h)."""
    collected = _collected.get()
    if collected is not None:
        collected.sources.update(names)


class Placed(wiring.Component):
    """The module `name`, made by `factory`, placed by Instance. Same ports as the component.

    Two placements of one name must mean the same hardware: the name carries the parameters that
    matter. `hier_block` makes it a unit of compilation of its own in Verilator. `clocked` is False
    for combinational modules, which have no clk and rst.
    """

    def __init__(
        self,
        name: str,
        factory: Callable[[], wiring.Component],
        *,
        clocked: bool = True,
        hier_block: bool = False,
    ):
        self.module_name = name
        self.factory = factory
        self.hier_block = hier_block
        self.clocked = clocked
        self._prototype = factory()
        super().__init__(self._prototype.signature)
        counts_as_used(self._prototype)  # it only lends its signature

    def elaborate(self, platform: object) -> Module:
        collected = _collected.get()
        if collected is not None:
            collected.modules.setdefault(self.module_name, self.factory)
            if self.hier_block:
                collected.hier_blocks.add(self.module_name)
        ports: dict[str, object] = {}
        if self.clocked:
            ports["i_clk"] = ClockSignal()
            ports["i_rst"] = ResetSignal()
        for path, member, value in self.signature.flatten(self):
            port = "__".join(str(part) for part in path)
            value = Value.cast(value)
            if isinstance(value, Const):
                continue
            ports[("i_" if member.flow == In else "o_") + port] = value
        m = Module()
        m.submodules.instance = Instance(self.module_name, **ports)
        return m


class Repeated(wiring.Component):
    """The module `name`: `count` lanes like the one that `factory` makes. Ports: those of a lane.

    A port in `shared` goes to all lanes; of every other one lane i has the bits from i times its width on. `domains`
    are clock domains of the lane, each with a port `enable_{domain}`: they run on the clock of the whole, in cycles
    with it. A lane's outputs may depend on registers and inputs; placed components cannot be inside it.
    """

    def __init__(
        self,
        name: str,
        factory: Callable[[], wiring.Component],
        count: int,
        *,
        shared: tuple[str, ...],
        domains: tuple[str, ...] = (),
    ):
        self.module_name = name
        self.repetition = Repetition(factory, count, frozenset(shared), domains)
        lane = factory()
        counts_as_used(lane)  # it only lends its signature
        ports: dict[str, wiring.Member] = {f"enable_{domain}": In(1) for domain in domains}
        for port, member in lane.signature.members.items():
            flow = In if member.flow == In else Out
            width = Shape.cast(member.shape).width
            ports[port] = member if port in shared else flow(width * count)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        collected = _collected.get()
        if collected is not None:
            collected.lanes.setdefault(self.module_name, self.repetition)
        ports: dict[str, object] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for (port,), member, value in self.signature.flatten(self):
            ports[("i_" if member.flow == In else "o_") + str(port)] = Value.cast(value)
        m = Module()
        m.submodules.instance = Instance(self.module_name, **ports)
        return m
