"""Where the units of an input go, and which are refused."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.switch_config import SwitchConfig

__all__ = ["Routes"]

_OUTPUT_BITS = 7


class Routes(wiring.Component):
    """`endpoint` -> `route`, an output, and whether a unit to it is `refused`, for one of the three reasons:
    there is no route (`hole`), the output is not one of the `same` partition (`foreign`), or is not `alive` (`dead`).

    `write`: `write_route` becomes the route of `write_endpoint`: bits 6:0 an output, bit 7 there is a route. One to an
    output that is not a port is a hole. Timing: combinational; what is written holds from the next cycle.
    At power-up endpoint e is routed to port e, and those above the ports are holes. A reset does not change the table.
    With `read_back`: `read_route` is what was written of `read_endpoint`, a cycle later; 0 of a hole.
    """

    def __init__(self, cfg: SwitchConfig, read_back: bool = False):
        self.cfg = cfg
        self.read_back = read_back
        reading = {"read_endpoint": In(ENDPOINT_BITS), "read_route": Out(_OUTPUT_BITS + 1)}
        super().__init__(
            {
                **(reading if read_back else {}),
                "endpoint": In(ENDPOINT_BITS),
                "route": Out(range(cfg.outputs)),
                "refused": Out(1),
                "hole": Out(1),
                "foreign": Out(1),
                "dead": Out(1),
                "alive": In(cfg.outputs),
                "same": In(cfg.outputs),
                "write": In(1),
                "write_endpoint": In(ENDPOINT_BITS),
                "write_route": In(_OUTPUT_BITS + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        shape = data.StructLayout({"output": range(cfg.outputs), "there": 1})
        identity = [{"output": e if e < cfg.ports else 0, "there": e < cfg.ports} for e in range(1 << ENDPOINT_BITS)]
        m.submodules.table = table = Memory(shape=shape, depth=1 << ENDPOINT_BITS, init=identity)
        store, found = table.write_port(), table.read_port(domain="comb")
        wanted = self.write_route[:_OUTPUT_BITS]
        m.d.comb += [
            store.en.eq(self.write),
            store.addr.eq(self.write_endpoint),
            store.data.output.eq(wanted),
            store.data.there.eq(
                self.write_route[_OUTPUT_BITS]
                & ((wanted < cfg.ports) | fault("a route to an output that is not a port counts"))
            ),
            found.addr.eq(self.endpoint),
            self.route.eq(found.data.output),
            self.hole.eq(~found.data.there & ~fault("a hole in a table is a route")),
            self.foreign.eq(
                ~self.hole
                & ~self.same.bit_select(self.route, 1)
                & ~fault("a unit for another partition is not refused")
            ),
            self.dead.eq(
                ~self.hole
                & ~self.foreign
                & ~self.alive.bit_select(self.route, 1)
                & ~fault("an output that is not alive takes units")
            ),
            self.refused.eq(self.hole | self.foreign | self.dead),
        ]
        if self.read_back:
            kept = table.read_port()
            there = kept.data.there | fault("a hole reads as what was written")
            m.d.comb += [
                kept.addr.eq(self.read_endpoint),
                self.read_route[:_OUTPUT_BITS].eq(Mux(there, kept.data.output, 0)),
                self.read_route[_OUTPUT_BITS].eq(kept.data.there),
            ]
        return m
