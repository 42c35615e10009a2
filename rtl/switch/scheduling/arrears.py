"""Who was served less than others by an output of a switch goes first."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.switch_config import SwitchConfig

__all__ = ["ARREARS_BITS", "LONG_FLITS", "Arrears"]

ARREARS_BITS = 5
"""Of the flits that an input is behind: they stop at 31, and from 16 on it goes first."""
LONG_FLITS = 8
"""Flits that wait, from which an input is owed anything: two of the longest units."""


class Arrears(wiring.Component):
    """Flits of one output that each input is behind the one served most, whatever their classes.

    long: inputs with LONG_FLITS or more waiting for this output (`length_cap_flits` if that is less); the others are
    owed nothing. served: one-hot, who sends to it in the next slot; idle: who sends nowhere then. A flit for an input
    that is behind pays one; else each idle input that waits long is one more behind: an input that is busy with other
    outputs misses nothing. asks: who asks for the class that is served; free: who has no unit under way. `first`: of
    those that ask the ones that are 16 flits behind or more, if one of them is free; else all.
    Timing: first is combinational from asks, free and registers; `step` ends the slot.
    """

    def __init__(self, cfg: SwitchConfig):
        n = self.count = cfg.inputs
        super().__init__(
            {
                "step": In(1),
                "long": In(n),
                "served": In(n),
                "idle": In(n),
                "asks": In(n),
                "free": In(n),
                "first": Out(n),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        owed = [Signal(n, name=f"owed_{b}") for b in range(ARREARS_BITS)]  # bit b of every input's
        some: Value = owed[0]
        most: Value = owed[0]
        for plane in owed[1:]:
            some, most = some | plane, most & plane
        pays, misses, behind = Signal(n), Signal(n), Signal(n)
        missed = (self.served & ~some).any()
        m.d.comb += [
            pays.eq(self.served & some & ~fault("what was served is not paid").replicate(n)),
            misses.eq(
                Mux(missed, self.long & (self.idle | fault("busy inputs are owed as well").replicate(n)) & ~most, 0)
            ),
            behind.eq(self.asks & owed[-1] & ~fault("nobody is ever behind in a schedule").replicate(n)),
            self.first.eq(Mux((behind & self.free).any(), behind, self.asks)),
        ]
        # an input pays or misses: one ripple of a carry or a borrow through the bits of all inputs
        moves: Value = pays | misses
        stays = self.long | fault("who waits no longer stays behind").replicate(n)
        for b, plane in enumerate(owed):
            moved = Signal(n, name=f"moved_{b}")
            m.d.comb += moved.eq(moves)
            with m.If(self.step):
                m.d.sync += plane.eq((plane ^ moved) & stays)
            moves = moved & (plane ^ pays)
        return m
