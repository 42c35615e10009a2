"""Expand: every word of 16 bits is made what the manual's listing says it stands for, or is illegal."""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module
from amaranth.lib import wiring

from rtl.gpsimd.expand import Expand
from verif.formal.gpsimd_isa import Compressed
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "CompressedProof"]


class CompressedProof(wiring.Component):
    """Any word whose two low bits are not 11."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.expand = expand = Expand()
        m.submodules.listing = listing = Compressed()
        without_reset(m)
        m.d.comb += [
            expand.half.eq(AnySeq(16)),
            listing.half.eq(expand.half),
            Assume(expand.half[:2] != 3),
            Assert(expand.illegal == listing.illegal),
            Assert(expand.illegal | (expand.word == listing.word)),
            Cover(~expand.illegal & (expand.word == 0x00100073)),
            Cover(expand.illegal & (expand.half[13:] == 4)),
        ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_compressed",
        make=CompressedProof,
        depth=1,
        cover_depth=1,
        fault_depth=1,
        faults=("c.jalr does not link",),
        short=True,
    ),
)
