"""Registers of a switch that are not a port's: partitions, ports taken out, and the way to all others."""

from amaranth.hdl import Array, Module, Mux, Signal, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import (
    ADDRESS_BITS,
    ROUTE_PORT_BITS,
    ROUTE_VALID_BIT,
    SwitchRegister,
    SwitchSpace,
)
from rtl.switch.routes import PARTITION_BITS, route_layout

__all__ = ["Registers"]

_PORT_STRIDE_BITS = 8


class Registers(wiring.Component):
    """`write`: `data` to the register at `address`; `read_data`: what is there, two cycles later; 0 where nothing is.

    `values`: what each port shows of its own block, a cycle after `address`; `route_read`: the row of the routing table
    at `target`. `disabled`: by port. `route_write`, `partition_write`: to Routes, for the endpoint or port `target`.
    """

    FAULTS = {
        1: "ports that are not there are others",
    }

    def __init__(self, cfg: SwitchConfig, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        p = cfg.ports
        super().__init__(
            {
                "write": In(1),
                "address": In(ADDRESS_BITS),
                "data": In(64),
                "read_data": Out(64),
                "values": In(data.ArrayLayout(64, p)),
                "disabled": Out(p),
                "target": Out(ENDPOINT_BITS),
                "route_write": Out(1),
                "route": Out(route_layout(cfg)),
                "route_read": In(route_layout(cfg)),
                "partition_write": Out(1),
                "partition": Out(PARTITION_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        p = self.cfg.ports
        block = (self.address - SwitchSpace.PORT) >> _PORT_STRIDE_BITS
        port = Signal(range(p))
        is_port, exists = Signal(), Signal()
        register = self.address[:_PORT_STRIDE_BITS]
        number = self.data[:ROUTE_PORT_BITS]
        m.d.comb += [
            is_port.eq(self.address >= SwitchSpace.PORT),
            port.eq(block),
            exists.eq(is_port & ((block < p) | planted(self.plant, 1))),
            self.target.eq(Mux(is_port, port, self.address >> 3)),
            self.route_write.eq(self.write & ~is_port),
            self.route.output.eq(number),
            self.route.hole.eq(~self.data[ROUTE_VALID_BIT] | (number >= p)),
            self.partition_write.eq(self.write & exists & (register == SwitchRegister.PARTITION)),
            self.partition.eq(self.data),
        ]
        with m.If(self.write & exists & (register == SwitchRegister.CONTROL)):
            m.d.sync += self.disabled.bit_select(port, 1).eq(self.data[0])

        asked, was_port, was_route = Signal.like(port), Signal(), Signal()
        row = Signal(64)
        m.d.sync += [
            asked.eq(port),
            was_port.eq(exists),
            was_route.eq(~is_port),
            row.eq(Mux(self.route_read.hole, 0, self.route_read.output | (1 << ROUTE_VALID_BIT))),
            self.read_data.eq(Mux(was_route, row, Mux(was_port, Array(self.values[k] for k in range(p))[asked], 0))),
        ]
        return m
