"""Which places of a staging memory are in use."""

from functools import reduce
from operator import and_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.dma.fabric.packets import SLOT_BITS, SLOTS_EACH, bank_bits
from rtl.dma.layouts import CLASSES

__all__ = ["Places"]


class Places(wiring.Component):
    """`place` is one of `bank` that is not in use, if `there` for a piece of `class_`; `take` uses it, `back` gives
    places back. `room`: every bank has one for the class.

    Of `classes`, one that has a place of a bank leaves one for each that has none there, so none waits for another's.
    That of transfers is all that a descriptor can name, so that what a lone class has does not depend on dma.classes.
    Timing: `room` and `used` from registers, `place` and `there` from `bank` and `class_` too.
    """

    def __init__(self, cfg: Config, *, classes: int = CLASSES):
        self.cfg = cfg
        self.classes = classes
        self.owners = [Signal(range(classes), name=f"owner{n}") for n in range(SLOTS_EACH)]  # seen by proofs too
        super().__init__(
            {
                "bank": In(bank_bits(cfg)),
                "class_": In(range(classes)),
                "place": Out(SLOT_BITS),
                "there": Out(1),
                "room": Out(classes),
                "take": In(1),
                "back": In(SLOTS_EACH),
                "used": Out(SLOTS_EACH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = self.cfg.dma.link_movers
        anywhere = fault("a place of a link is taken in any bank")
        free = Signal(SLOTS_EACH)
        m.d.comb += [
            free.eq(Cat(~self.used[n] & ((self.bank == n % banks) | anywhere) for n in range(SLOTS_EACH))),
        ]
        rooms: list[Signal] = []  # by bank
        for k in range(banks):
            mine = range(k, SLOTS_EACH, banks)
            spare = Signal(range(len(mine) + 1), name=f"spare{k}")
            without = Signal(range(self.classes + 1), name=f"without{k}")  # classes that have no place here
            has = [Cat(self.used[n] & (self.owners[n] == c) for n in mine).any() for c in range(self.classes)]
            room = Signal(self.classes, name=f"room{k}")
            leaves = fault("a class takes the places of others that have none")
            m.d.comb += [
                spare.eq(sum((~self.used[n] for n in mine), Const(0))),
                without.eq(sum((~h for h in has), Const(0))),
                room.eq(Cat((spare > without) | ((~h | leaves) & (spare != 0)) for h in has)),
            ]
            rooms.append(room)
        m.d.comb += [
            self.room.eq(reduce(and_, rooms)),
            self.there.eq(free.any() & (Array(rooms)[self.bank].bit_select(self.class_, 1) | anywhere)),
        ]
        for n in reversed(range(SLOTS_EACH)):
            with m.If(free[n]):
                m.d.comb += self.place.eq(n)
        taken = Signal(SLOTS_EACH)
        m.d.comb += taken.eq(Mux(self.take, 1 << self.place, 0))
        m.d.sync += self.used.eq((self.used & ~self.back) | taken)
        for n, owner in enumerate(self.owners):
            with m.If(taken[n]):
                m.d.sync += owner.eq(self.class_)
        return m
