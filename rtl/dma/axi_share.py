"""Instruction fetch and DMA share the read channels of HBM port 0."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.axi import FAST_ID, FETCH_ID, AxiReadSignature, AxiSignature
from rtl.base.fault import fault

__all__ = ["AxiShare"]

_ADDRESS = ("arid", "araddr", "arlen", "arsize", "arburst", "arqos")


class AxiShare(wiring.Component):
    """`fetch` and `dma` become one manager `axi`. Fetch goes first; ids from FETCH_ID up to FAST_ID are its own.

    Timing: AR leaves through a register, everything else passes through.
    """

    def __init__(self, port_bytes: int):
        self.port_bytes = port_bytes
        super().__init__(
            {
                "fetch": In(AxiReadSignature(port_bytes)),
                "dma": In(AxiSignature(port_bytes)),
                "axi": Out(AxiSignature(port_bytes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetch = self.fetch
        dma = self.dma
        axi = self.axi
        free = Signal()
        to_fetch = Signal()
        m.d.comb += [
            free.eq(~axi.arvalid | axi.arready | (fetch.arvalid & fault("a fetch replaces a request that waits"))),
            fetch.arready.eq(free),
            dma.arready.eq(free & ~fetch.arvalid),
        ]
        with m.If(free):
            m.d.sync += axi.arvalid.eq(fetch.arvalid | dma.arvalid)
            for name in _ADDRESS:
                chosen = Mux(fetch.arvalid, getattr(fetch, name), getattr(dma, name))
                m.d.sync += getattr(axi, name).eq(chosen)

        m.d.comb += [
            to_fetch.eq((axi.rid >= FETCH_ID) & (axi.rid < FAST_ID)),
            fetch.rvalid.eq(axi.rvalid & to_fetch),
            dma.rvalid.eq(axi.rvalid & (~to_fetch | fault("beats of fetch reach the DMA too"))),
            axi.rready.eq(Mux(to_fetch, fetch.rready, dma.rready)),
        ]
        for side in (fetch, dma):
            for name in ("rid", "rdata", "rresp", "rlast"):
                m.d.comb += getattr(side, name).eq(getattr(axi, name))
        for name, member in AxiSignature(self.port_bytes).members.items():
            if name[0] in "wb" or name.startswith("aw"):
                if member.flow == Out:
                    m.d.comb += getattr(axi, name).eq(getattr(dma, name))
                else:
                    m.d.comb += getattr(dma, name).eq(getattr(axi, name))
        return m
