"""The rules of a stream, as a checker for any proof: an offer stays, valid and payload, until it is taken."""

from amaranth.hdl import Assert, Assume, Module, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from verif.formal.free import drive, ports

__all__ = ["StreamRules", "surround"]


class StreamRules(wiring.Component):
    """Holds the transmitter of a stream to its rule: asserted of the unit under proof, assumed of what surrounds it.

    `void`: an offer may be withdrawn in this cycle. `waits`: an offer of the cycle before was not taken.
    """

    def __init__(
        self,
        valid: Value,
        ready: Value,
        payload: ValueLike,
        *,
        assume: bool = False,
        void: ValueLike = 0,
    ):
        self.valid = valid
        self.ready = ready
        self.payload = Value.cast(payload)
        self.void = void
        self.rule = Assume if assume else Assert
        self.waits = Signal()
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept = Signal(len(self.payload))
        m.d.sync += [self.waits.eq(self.valid & ~self.ready), kept.eq(self.payload)]
        m.d.comb += self.rule(~self.waits | Value.cast(self.void) | (self.valid & (self.payload == kept)))
        return m


def surround(
    m: Module, unit: wiring.Component, *, unchecked: tuple[str, ...] = (), **fixed: ValueLike
) -> dict[str, StreamRules]:
    """Everything outside a unit may do anything that the rules of streams allow; its own streams are held to them.

    Inputs that are not streams are free in every cycle, or `fixed`. Returns the checkers of the outputs by name;
    `unchecked` ones have none.
    """
    checkers: dict[str, StreamRules] = {}
    for name, member, port in ports(unit):
        if member.is_signature and isinstance(member.signature, stream.Signature):
            inward = member.flow == In
            drive(m, port.valid if inward else port.ready)
            if inward:
                drive(m, port.payload)
            if name in unchecked:
                continue
            rules = StreamRules(port.valid, port.ready, port.payload, assume=inward)
            m.submodules[f"rules_{name}"] = rules
            if not inward:
                checkers[name] = rules
        elif member.is_port and member.flow == In:
            if name in fixed:
                m.d.comb += Value.cast(port).eq(fixed[name])
            else:
                drive(m, port)
    return checkers
