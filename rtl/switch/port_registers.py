"""What a port of a switch counts, and its registers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.layouts import layout
from rtl.contract.link import ENDPOINT_BITS, PACKET_HEADER, LinkCause
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_registers import SwitchCause, SwitchRegister

__all__ = ["PortRegisters"]

_STEP = 10  # a new session may report a whole window


class PortRegisters(wiring.Component):
    """`value` is the 64-bit register at byte `address` of the port's block; 0 where there is none.

    `link_steps`, `steps`: what to add to the counters of each LinkCause and SwitchCause. Counters have `count_bits` and
    stop at their end.
    `refused`: a unit for `endpoint` that begins with the packet header `packet` is refused; the first one is kept.
    Timing: `value` follows `address` by a cycle, and shows the port as it was then.
    """

    def __init__(self, cfg: LinkConfig, count_bits: int = 32):
        self.link = link = cfg
        self.count_bits = count_bits
        super().__init__(
            {
                "address": In(8),
                "value": Out(64),
                "link_steps": In(data.ArrayLayout(_STEP, len(LinkCause))),
                "steps": In(data.ArrayLayout(_STEP, len(SwitchCause))),
                "refused": In(1),
                "endpoint": In(ENDPOINT_BITS),
                "packet": In(layout(PACKET_HEADER)),
                "state": In(4),
                "alive": In(1),
                "session": In(16),
                "partner": In(16),
                "partition": In(4),
                "disabled": In(1),
                "in_flight": In(range(link.window_flits + 2)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first_address = Signal(64)
        first_source, first_endpoint = Signal(ENDPOINT_BITS), Signal(ENDPOINT_BITS)
        kept = Signal()
        with m.If(self.refused & (~kept | fault("the last unit refused is kept, not the first"))):
            m.d.sync += [
                kept.eq(1),
                first_address.eq(self.packet.address),
                first_source.eq(self.packet.source),
                first_endpoint.eq(self.endpoint),
            ]
        gap, bits = 16 - ENDPOINT_BITS, self.count_bits
        registers: dict[int, Value] = {
            SwitchRegister.STATE: Cat(self.state, Const(0, 4), self.alive),
            SwitchRegister.SESSION: Cat(self.session, self.partner),
            SwitchRegister.PARTITION: self.partition,
            SwitchRegister.CONTROL: self.disabled,
            SwitchRegister.IN_FLIGHT: self.in_flight,
            SwitchRegister.FIRST_ADDRESS: first_address,
            SwitchRegister.FIRST_SOURCE: Cat(
                first_source, Const(0, gap), first_endpoint, Const(0, 63 - 32 + gap), kept
            ),
        }
        for base, steps, causes in (
            (SwitchRegister.LINK_CAUSE, self.link_steps, LinkCause),
            (SwitchRegister.CAUSE, self.steps, SwitchCause),
        ):
            for cause in causes:
                count = Signal(bits, name=f"count_{cause.name.lower()}_{int(base)}")
                after = Signal(bits + 1, name=f"after_{cause.name.lower()}_{int(base)}")
                step = Mux(fault("a step of several counts as one"), steps[cause].any(), steps[cause])
                m.d.comb += after.eq(count + step)
                m.d.sync += count.eq(
                    Mux(after[bits] & ~fault("a counter of a port begins again at its end"), (1 << bits) - 1, after)
                )
                registers[base + 8 * cause] = count
        with m.Switch(self.address):
            for address, value in registers.items():
                with m.Case(address):
                    m.d.sync += self.value.eq(value)
            with m.Default():
                m.d.sync += self.value.eq(0)
        return m
