"""AxiShare: two managers that keep the rules of AXI become one that does, and each gets the answers to its own."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Module, Signal
from amaranth.lib import wiring

from rtl.base.axi import FAST_ID, FETCH_ID, ID_BITS
from rtl.dma.axi_share import AxiShare
from verif.formal.axi_rules import AxiRules
from verif.formal.free import drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "AxiShareProof"]

_PORT_BYTES = 16


class AxiShareProof(wiring.Component):
    """Any fetch with ids of its own, any DMA with others; the answers to the id that the prover chooses are counted."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.share = share = AxiShare(_PORT_BYTES)
        without_reset(m)
        followed = Signal(ID_BITS)
        m.d.comb += followed.eq(AnyConst(ID_BITS))
        m.submodules.axi = axi = AxiRules(share.axi, _PORT_BYTES, followed)
        m.submodules.fetch = fetch = AxiRules(share.fetch, _PORT_BYTES, followed, driven=False)
        m.submodules.dma = dma = AxiRules(share.dma, _PORT_BYTES, followed, driven=False)
        for rules in (axi, fetch, dma):
            rules.free(m)
        drive(m, axi.pick)
        m.d.comb += dma.pick.eq(axi.pick)
        fetch_id, dma_id = share.fetch.arid, share.dma.arid
        m.d.comb += [
            Assume((fetch_id >= FETCH_ID) & (fetch_id < FAST_ID)),
            Assume((dma_id < FETCH_ID) | (dma_id >= FAST_ID)),
        ]

        # for the induction: what has left the sides is in the register or on the bus, and writes pass through
        of_fetch = (followed >= FETCH_ID) & (followed < FAST_ID)
        waits = share.axi.arvalid & (share.axi.arid == followed)
        m.d.comb += [
            Assert(fetch.reads_due + dma.reads_due == axi.reads_due + waits),
            Assert((of_fetch & (dma.reads_due == 0)) | (~of_fetch & (fetch.reads_due == 0))),
            Assert(dma.writes_due == axi.writes_due),
            Assert(dma.open_bursts == axi.open_bursts),
            Assert((dma.ahead == axi.ahead) & (dma.watched == axi.watched) & (dma.left == axi.left)),
            Assume(axi.reads_due < 64),  # a subordinate takes no more; counts do not wrap
            Cover(of_fetch & share.fetch.rvalid & share.fetch.rready & share.fetch.rlast),
            Cover(~of_fetch & share.dma.rvalid & (dma.reads_due == 2)),
            Cover(share.axi.arvalid & axi.offers["ar"].waits & share.fetch.arvalid & share.dma.arvalid),
            Cover(share.dma.wvalid & share.dma.wlast & share.dma.wready),
        ]
        return m


PROOFS = (
    Proof(
        name="axi_share",
        make=AxiShareProof,
        depth=3,
        cover_depth=8,
        fault_depth=8,
        faults=(
            "a fetch replaces a request that waits",
            "beats of fetch reach the DMA too",
        ),
        short=True,
    ),
)
