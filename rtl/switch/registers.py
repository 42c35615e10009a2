"""Registers of a switch that are not a port's: partitions, ports taken out, and the way to all others."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import SwitchRegister, SwitchSpace

__all__ = ["Registers"]

_PORT_STRIDE_BITS = 8


class Registers(wiring.Component):
    """`write`: `data` to the register at `address`; `read_data`: what is there, two cycles later.

    A route can only be written; where nothing is, 0 is read. `values`: what each port shows of its own block, a cycle
    after `address`. `partition`, `disabled`: by port. `same`: for each row of the crossbar, the columns of its
    partition; the responder, the last of both, is in all of them. `route_write`: the route of an endpoint is written.
    """

    FAULTS = {
        1: "ports that are not there are others",
        2: "the partition of a port is not compared",
    }

    def __init__(self, cfg: SwitchConfig, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        p = cfg.ports
        super().__init__(
            {
                "write": In(1),
                "address": In(16),
                "data": In(64),
                "read_data": Out(64),
                "values": In(data.ArrayLayout(64, p)),
                "partition": Out(data.ArrayLayout(4, p)),
                "disabled": Out(p),
                "same": Out(data.ArrayLayout(cfg.outputs, cfg.inputs)),
                "route_write": Out(1),
                "route_endpoint": Out(ENDPOINT_BITS),
                "route": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        p = self.cfg.ports
        block = (self.address - SwitchSpace.PORT) >> _PORT_STRIDE_BITS
        port = Signal(range(p))
        is_port, exists = Signal(), Signal()
        register = self.address[:_PORT_STRIDE_BITS]
        m.d.comb += [
            is_port.eq(self.address >= SwitchSpace.PORT),
            port.eq(block),
            exists.eq(is_port & ((block < p) | planted(self.plant, 1))),
        ]
        m.d.sync += [
            self.route_write.eq(self.write & ~is_port),
            self.route_endpoint.eq(self.address >> 3),
            self.route.eq(Cat(self.data[:7], self.data[15])),
        ]
        for k in range(p):
            with m.If(self.write & exists & (port == k)):
                with m.If(register == SwitchRegister.PARTITION):
                    m.d.sync += self.partition[k].eq(self.data)
                with m.Elif(register == SwitchRegister.CONTROL):
                    m.d.sync += self.disabled[k].eq(self.data[0])
            others = Cat((self.partition[k] == self.partition[o]) | planted(self.plant, 2) for o in range(p))
            m.d.comb += self.same[k].eq(Cat(others, 1))
        m.d.comb += self.same[p].eq(-1)

        asked, was_port = Signal.like(port), Signal()
        m.d.sync += [
            asked.eq(port),
            was_port.eq(exists),
            self.read_data.eq(Mux(was_port, Array(self.values[k] for k in range(p))[asked], 0)),
        ]
        return m
