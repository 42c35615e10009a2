"""Where units go: endpoints to outputs, and who may send to whom."""

from amaranth.hdl import Module, Signal, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.switch_config import SwitchConfig

__all__ = ["PARTITION_BITS", "Routes", "route_layout"]

PARTITION_BITS = 4


def route_layout(cfg: SwitchConfig) -> data.StructLayout:
    """A row of the table: an output, or a hole."""
    return data.StructLayout({"output": range(cfg.outputs), "hole": 1})


class Routes(wiring.Component):
    """For each port: `endpoint` -> `out_port`, and whether a unit to it is `refused`; combinational.

    Refused is what goes to a hole, to another partition than that of the port, to an output that is not `alive`, or to
    the responder, which has no endpoint. `row_write`: the row at `address` becomes `row` (a port that is not there
    makes a hole); `partition_write`: the port at `address` (its low bits) is in `partition`. What stands there is in
    `row_read`, `partition_read`. Timing: written values hold from the next cycle.
    At power-up endpoint e is routed to port e, those above the ports are holes, all ports are in partition 0.
    A reset restores the partitions, but not the table: it is a memory.
    """

    FAULTS = {
        1: "partitions are not looked at",
        2: "a hole is a route",
        3: "an output that is not alive takes units",
        4: "a route written to a port that is not there counts",
    }

    def __init__(self, cfg: SwitchConfig, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "endpoint": In(data.ArrayLayout(ENDPOINT_BITS, cfg.ports)),
                "out_port": Out(data.ArrayLayout(range(cfg.outputs), cfg.ports)),
                "refused": Out(cfg.ports),
                "alive": In(cfg.ports),
                "address": In(ENDPOINT_BITS),
                "row_write": In(1),
                "row": In(route_layout(cfg)),
                "row_read": Out(route_layout(cfg)),
                "partition_write": In(1),
                "partition": In(PARTITION_BITS),
                "partition_read": Out(PARTITION_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = self.cfg.ports
        shape = route_layout(self.cfg)
        identity = [{"output": e % self.cfg.outputs, "hole": int(e >= ports)} for e in range(1 << ENDPOINT_BITS)]
        m.submodules.table = table = Memory(shape=shape, depth=1 << ENDPOINT_BITS, init=identity)
        write, back = table.write_port(), table.read_port(domain="comb")
        absent = (self.row.output >= ports) & ~planted(self.plant, 4)
        m.d.comb += [
            write.en.eq(self.row_write),
            write.addr.eq(self.address),
            write.data.output.eq(self.row.output),
            write.data.hole.eq(self.row.hole | absent),
            back.addr.eq(self.address),
            self.row_read.eq(back.data),
        ]
        partitions = Signal(data.ArrayLayout(PARTITION_BITS, ports))
        port = self.address[: (ports - 1).bit_length()]
        m.d.comb += self.partition_read.eq(partitions[port])
        with m.If(self.partition_write):
            m.d.sync += partitions[port].eq(self.partition)
        for p in range(ports):
            found = table.read_port(domain="comb")
            foreign = partitions[found.data.output] != partitions[p]
            m.d.comb += [
                found.addr.eq(self.endpoint[p]),
                self.out_port[p].eq(found.data.output),
                self.refused[p].eq(
                    (found.data.hole & ~planted(self.plant, 2))
                    | (foreign & ~planted(self.plant, 1))
                    | (~self.alive.bit_select(found.data.output, 1) & ~planted(self.plant, 3))
                    | (found.data.output == ports)
                ),
            ]
        return m
