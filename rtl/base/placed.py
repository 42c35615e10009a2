"""Describe once, place many times: a component that becomes a Verilog module of its own.

Amaranth elaborates every submodule anew (72 ms for a PE), so what is repeated (PE tiles, lanes) is
converted once and placed by Instance. `Placed` looks like the component it stands for; the emitter
collects what was placed. Amaranth's own simulator cannot look inside an Instance and reads its
outputs as 0: test such designs in Verilator.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from amaranth.hdl import ClockSignal, Const, Instance, Module, ResetSignal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["Collected", "Placed", "collecting", "needs_source"]


class Collected:
    """What a conversion has met: components to convert as modules, and source files to add."""

    def __init__(self) -> None:
        self.modules: dict[str, Callable[[], wiring.Component]] = {}
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
    for combinational modules, which have no clk and rst. `domains`: the clock domains that it uses.
    """

    def __init__(
        self,
        name: str,
        factory: Callable[[], wiring.Component],
        *,
        clocked: bool = True,
        hier_block: bool = False,
        domains: tuple[str, ...] = ("sync",),
    ):
        self.module_name = name
        self.factory = factory
        self.hier_block = hier_block
        self.domains = domains if clocked else ()
        self._prototype = factory()
        super().__init__(self._prototype.signature)
        self._prototype._MustUse__used = True  # it only lends its signature

    def elaborate(self, platform: object) -> Module:
        collected = _collected.get()
        if collected is not None:
            collected.modules.setdefault(self.module_name, self.factory)
            if self.hier_block:
                collected.hier_blocks.add(self.module_name)
        ports: dict[str, object] = {}
        for domain in self.domains:
            prefix = "" if domain == "sync" else f"{domain}_"
            ports[f"i_{prefix}clk"] = ClockSignal(domain)
            ports[f"i_{prefix}rst"] = ResetSignal(domain)
        for path, member, value in self.signature.flatten(self):
            port = "__".join(str(part) for part in path)
            value = Value.cast(value)
            if isinstance(value, Const):
                continue
            ports[("i_" if member.flow == In else "o_") + port] = value
        m = Module()
        m.submodules.instance = Instance(self.module_name, **ports)
        return m
