"""Between the movers of a link and the staging memories of its packets, where additions are made."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.memory_port import SbufMoverSignature
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.dma.fabric.packets import SLOT_BITS, UNIT_BITS

__all__ = ["LinkStaging"]

_UNIT = SLOT_BITS + UNIT_BITS  # of a place and a unit in it; the bit above is the kind


class LinkStaging(wiring.Component):
    """`gather` writes to the staging memory of a sender and reads SBUF, `scatter` reads that of a receiver and writes
    SBUF, both at `sbuf`. Index 0 of `write_en` and `read_data`: requests going out, and coming in; 1: responses.

    `adding`: what goes to responses is kept too, and added to what is read of the request in `adding_slot`: words of
    4 bytes, or with `wide` the first of 8. Timing: a unit a cycle, read data in the next.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        port = SbufMoverSignature(cfg)
        super().__init__(
            {
                "gather": In(port),
                "scatter": In(port),
                "sbuf": Out(port),
                "write_en": Out(2),
                "write_unit": Out(_UNIT),
                "write_data": Out(128),
                "read_en": Out(2),
                "read_unit": Out(_UNIT),
                "read_data": In(128).array(2),
                "adding": In(1),
                "adding_slot": In(SLOT_BITS),
                "wide": In(1),
            }
        )

    @staticmethod
    def _unit(lane: Value, pair: Value) -> Value:
        """Unit, place and kind of a mover's SBUF address."""
        return Cat(pair, lane)[: _UNIT + 1]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.found = found = Ram(128, 1 << UNIT_BITS)
        port = self.gather
        to = Signal(_UNIT + 1)
        m.d.comb += [
            to.eq(self._unit(port.write_lane, port.write_pair)),
            port.write_ready.eq(1),
            self.write_en.eq(Mux(port.write_valid, 1 << to[_UNIT], 0)),
            self.write_unit.eq(to),
            self.write_data.eq(port.write_data),
            found.write_en.eq(self.write_en[1] & self.adding),
            found.write_address.eq(to[:UNIT_BITS]),
            found.write_mask.eq(1),
            found.write_data.eq(port.write_data),
            self.sbuf.read_valid.eq(port.read_valid),
            self.sbuf.read_lane.eq(port.read_lane),
            self.sbuf.read_pair.eq(port.read_pair),
            port.read_ready.eq(self.sbuf.read_ready),
            port.read_data.eq(self.sbuf.read_data),
            port.read_data_valid.eq(self.sbuf.read_data_valid),
        ]

        port = self.scatter
        at = Signal(_UNIT + 1)
        kind = Signal()  # of the unit that is shown now
        adds = Signal()
        m.d.comb += [
            at.eq(self._unit(port.read_lane, port.read_pair)),
            port.read_ready.eq(1),
            self.read_en.eq(Mux(port.read_valid, 1 << at[_UNIT], 0)),
            self.read_unit.eq(at),
            found.read_en.eq(self.read_en[0]),
            found.read_address.eq(at[:UNIT_BITS]),
            self.sbuf.write_valid.eq(port.write_valid),
            self.sbuf.write_lane.eq(port.write_lane),
            self.sbuf.write_pair.eq(port.write_pair),
            self.sbuf.write_data.eq(port.write_data),
            self.sbuf.write_bytes.eq(port.write_bytes),
            self.sbuf.write_add.eq(port.write_add),
            self.sbuf.write_last.eq(port.write_last),
            port.write_ready.eq(self.sbuf.write_ready),
            port.write_done.eq(self.sbuf.write_done),
        ]
        m.d.sync += port.read_data_valid.eq(port.read_valid)
        with m.If(port.read_valid):
            m.d.sync += [
                kind.eq(at[_UNIT]),
                adds.eq(self.adding & ~at[_UNIT] & (at[UNIT_BITS:_UNIT] == self.adding_slot)),
            ]
        request, response = self.read_data
        sums: list[Value] = []
        low = Signal(33)
        m.d.comb += low.eq(request[:32] + found.read_data[:32])
        sums.append(low[:32])
        for n in range(1, 4):
            carry = low[32] & self.wide & ~fault("a fetch-add of 8 bytes loses its carry") if n == 1 else 0
            sums.append((request.word_select(n, 32) + found.read_data.word_select(n, 32) + carry)[:32])
        m.d.comb += port.read_data.eq(Mux(kind, response, Mux(adds, Cat(sums), request)))
        return m
