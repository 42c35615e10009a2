"""Two at the same group of partitions: a mover and the link, or the two lanes of a mover."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fifo import Fifo
from rtl.base.memory_port import SbufMoverSignature
from rtl.contract.config import Config
from rtl.dma.layouts import ADDED_ROWS

__all__ = ["SbufShare"]


class SbufShare(wiring.Component):
    """`link` goes first, but not twice in a row while `mover` wants, unless it is to go first `always`; each way on its
    own. Whose sum has been written is known by the order of sums.

    Timing: combinational from both to `sbuf` and back; the last winner is a register.
    """

    def __init__(self, cfg: Config, *, always: bool = False):
        self.cfg = cfg
        self.always = always
        port = SbufMoverSignature(cfg)
        self.ends = Fifo(
            1, ADDED_ROWS
        )  # of rows that are added, 1 for the link; as many as there are places in SbufAdder. Seen by proofs too
        super().__init__({"mover": In(port), "link": In(port), "sbuf": Out(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for way, fields in (("read", ("lane", "pair")), ("write", ("lane", "pair", "data", "bytes", "add", "last"))):

            def of(port: object, field: str, way: str = way) -> Signal:
                return getattr(port, f"{way}_{field}")

            went = Signal(name=f"{way}_went")
            link = Signal(name=f"{way}_link")
            ready = of(self.sbuf, "ready")
            m.d.comb += [
                link.eq(of(self.link, "valid") & ~(went & of(self.mover, "valid") & (not self.always))),
                of(self.sbuf, "valid").eq(of(self.link, "valid") | of(self.mover, "valid")),
                of(self.link, "ready").eq(link & ready),
                of(self.mover, "ready").eq(~link & ready),
            ]
            with m.If(ready & of(self.sbuf, "valid")):
                m.d.sync += went.eq(link)
            for field in fields:
                m.d.comb += of(self.sbuf, field).eq(of(self.mover, field))
                with m.If(link):
                    m.d.comb += of(self.sbuf, field).eq(of(self.link, field))
        m.submodules.ends = ends = self.ends
        m.d.comb += [
            ends.i.valid.eq(
                self.sbuf.write_valid & self.sbuf.write_ready & self.sbuf.write_last & (self.sbuf.write_add != 0)
            ),
            ends.i.payload.eq(self.link.write_ready),
            ends.o.ready.eq(self.sbuf.write_done),
            self.link.write_done.eq(self.sbuf.write_done & ends.o.payload),
            self.mover.write_done.eq(self.sbuf.write_done & ~ends.o.payload),
        ]
        for port in (self.mover, self.link):
            m.d.comb += [
                port.read_data.eq(self.sbuf.read_data),
                port.read_data_valid.eq(self.sbuf.read_data_valid),
            ]
        return m
