"""Places: one that is given is free and of its bank, and a class that has none in a bank always finds one there."""

from dataclasses import replace

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Signal, Value
from amaranth.lib import wiring

from rtl.contract.config import Config, named
from rtl.dma.fabric.packets import SLOTS_EACH
from rtl.dma.fabric.places import Places
from verif.formal.arbiter import ones
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "LinkPlacesProof"]


class LinkPlacesProof(wiring.Component):
    """Any pieces of any class and bank; places that are in use come back, several at once. One bank is looked at."""

    def __init__(self, cfg: Config, classes: int):
        self.cfg = cfg
        self.classes = classes
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dma = self.cfg.dma
        m.submodules.places = places = Places(self.cfg, classes=self.classes)
        without_reset(m)
        bank = AnyConst(len(places.bank))
        class_, back = Signal(range(self.classes)), Signal(SLOTS_EACH)
        m.d.comb += [
            class_.eq(AnySeq(len(class_))),
            places.class_.eq(class_),
            places.bank.eq(AnySeq(len(places.bank))),
            places.take.eq(AnySeq(1) & places.there),
            back.eq(AnySeq(SLOTS_EACH)),
            places.back.eq(back & places.used),
            Assume(bank < dma.link_movers),
        ]
        here = [Const(1) if dma.link_movers == 1 else bank == n % dma.link_movers for n in range(SLOTS_EACH)]
        free = Signal(range(SLOTS_EACH + 1))
        has = Signal(self.classes)
        owned: list[Value] = [
            Cat(places.used[n] & here[n] & (places.owners[n] == c) for n in range(SLOTS_EACH)).any()
            for c in range(self.classes)
        ]
        m.d.comb += [
            free.eq(ones(Cat(~places.used[n] & here[n] for n in range(SLOTS_EACH)))),
            has.eq(Cat(owned)),
            Assert(free >= ones(~has)),
            Assert(~places.there | ~places.used.bit_select(places.place, 1)),
            Assert(~places.there | (places.place % dma.link_movers == places.bank)),
            Assert((places.bank != bank) | has.bit_select(class_, 1) | places.there),
            Assert((places.bank != bank) | ~places.room.bit_select(class_, 1) | places.there),
            Cover((free == 16 // dma.link_movers - 4 + ones(~has)) & ~has.all())
            if self.classes > 1
            else Cover(~places.there),
        ]
        return m


_TINY = named("tiny")
_FAULTS = ("a class takes the places of others that have none", "a place of a link is taken in any bank")

PROOFS = tuple(
    Proof(
        name=name,
        make=lambda classes=classes: LinkPlacesProof(replace(_TINY, dma=replace(_TINY.dma, link_movers=4)), classes),
        depth=2,
        cover_depth=20,
        fault_depth=18,
        faults=faults,
    )
    for name, classes, faults in (("link_places", 4, _FAULTS), ("link_places_answers", 1, _FAULTS[1:]))
)
