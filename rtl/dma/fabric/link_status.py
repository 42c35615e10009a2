"""What an endpoint counts, and the first request that it refused."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link import ENDPOINT_BITS

__all__ = ["LinkStatus"]


class LinkStatus(wiring.Component):
    """Counters of 32 bits that stop at their end: `refused` requests, signals that `failed`, responses `dropped`; and
    of requests and responses those that were `foreign`: for another core or endpoint, up to two a cycle.

    `first_address`, `first_source`: of the first refused request since reset.
    Timing: a cycle behind the strobes.
    """

    def __init__(self):
        names = ("refused", "failed", "dropped")
        super().__init__(
            {
                **{name: In(1) for name in names},
                "foreign": In(2),
                **{f"{name}_count": Out(32) for name in (*names, "foreign")},
                "address": In(64),
                "source": In(ENDPOINT_BITS),
                "first_address": Out(64),
                "first_source": Out(ENDPOINT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name in ("refused", "failed", "dropped", "foreign"):
            count: Signal = getattr(self, f"{name}_count")
            after = Signal(33, name=f"{name}_after")
            m.d.comb += after.eq(count + getattr(self, name))
            m.d.sync += count.eq(Mux(after[32], 0xFFFFFFFF, after))
        with m.If(self.refused & (self.refused_count == 0)):
            m.d.sync += [self.first_address.eq(self.address), self.first_source.eq(self.source)]
        return m
