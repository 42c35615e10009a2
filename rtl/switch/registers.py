"""Registers of a switch that are not a port's: partitions, ports taken out, what the responder counts, and the way to
all others."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import ENDPOINT_BITS, UNIT_FLITS_MAX
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import ResponderRegister, SwitchRegister, SwitchSpace

__all__ = ["Registers"]

_PORT_STRIDE_BITS = 8


class Registers(wiring.Component):
    """`write`: `data` to the register at `address`; `read_data`: what is there, two cycles later.

    Where nothing is, 0 is read. `values`: what each port shows of its own block, a cycle after `address`; `read_route`:
    the route of `read_endpoint`, a cycle after it. `answered`, `unsent_flits`, `bad_parity`: what the responder counts,
    in counters of `count_bits`. `partition`, `disabled`: by port. `same`: for each row of the crossbar, the columns of
    its partition; the responder, the last of both, is in all of them. `route_write`: an endpoint's route is written.
    """

    def __init__(self, cfg: SwitchConfig, count_bits: int = 32):
        self.cfg = cfg
        self.count_bits = count_bits
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
                "read_endpoint": Out(ENDPOINT_BITS),
                "read_route": In(8),
                "answered": In(1),
                "unsent_flits": In(range(UNIT_FLITS_MAX + 1)),
                "bad_parity": In(1),
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
            exists.eq(is_port & ((block < p) | fault("ports that are not there are others"))),
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
            others = Cat(
                (self.partition[k] == self.partition[o]) | fault("the partition of a port is not compared")
                for o in range(p)
            )
            m.d.comb += self.same[k].eq(Cat(others, 1))
        m.d.comb += self.same[p].eq(-1)

        asked, was_port, was_route = Signal.like(port), Signal(), Signal()
        count = self._responder(m)
        m.d.comb += self.read_endpoint.eq(self.address >> 3)
        m.d.sync += [asked.eq(port), was_port.eq(exists), was_route.eq(~is_port), self.read_data.eq(count)]
        with m.If(was_route | (fault("a route is read where a port's register is") & self.read_route[7])):
            m.d.sync += self.read_data.eq(Cat(self.read_route[:7], Const(0, 8), self.read_route[7]))
        with m.Elif(was_port):
            m.d.sync += self.read_data.eq(Array(self.values[k] for k in range(p))[asked])
        return m

    def _responder(self, m: Module) -> Signal:
        """Counters of the responder. Returns the one that was asked for in the cycle before, or 0."""
        steps: dict[int, Value] = {
            ResponderRegister.ANSWERED: self.answered,
            ResponderRegister.UNSENT: self.unsent_flits,
            ResponderRegister.PARITY: self.bad_parity,
        }
        end = (1 << self.count_bits) - 1
        shown = Signal(self.count_bits)
        m.d.sync += shown.eq(0)
        for register, step in steps.items():
            count = Signal(self.count_bits, name=f"count_{register}")
            after = Signal(self.count_bits + 1, name=f"after_{register}")
            m.d.comb += after.eq(count + step)
            m.d.sync += count.eq(
                Mux(after[self.count_bits] & ~fault("a counter of a switch begins again at its end"), end, after)
            )
            with m.If(self.address == SwitchSpace.RESPONDER + register):
                m.d.sync += shown.eq(count)
        return shown
