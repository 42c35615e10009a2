"""A counter of permission: who sends takes credits, who receives gives them back."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Credit"]


class Credit(wiring.Component):
    """`limit` credits after reset; up to `most` taken and given back in a cycle.

    Timing: `count` comes from a register. Taking more than `count`, or giving back more than was taken,
    is an error of the user.
    """

    def __init__(self, limit: int, most: int = 1):
        if not 1 <= most <= limit:
            raise ValueError(f"most must be from 1 to the limit of {limit} credits, not {most}")
        self.limit = limit
        self.most = most
        super().__init__(
            {
                "take": In(range(most + 1)),
                "give": In(range(most + 1)),
                "count": Out(range(limit + 1), init=limit),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.count.eq(self.count - self.take + self.give)
        with m.If(fault("a credit given back while one is taken is lost") & (self.take != 0)):
            m.d.sync += self.count.eq(self.count - self.take)
        return m
