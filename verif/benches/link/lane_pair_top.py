"""Two ends of a link without codec and states: senders, receivers and wires that can be broken."""

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.delay import delayed
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout, lanes_layout, physical_lanes
from rtl.link.lanes.lane_health import FIX
from rtl.link.lanes.lane_receiver import LaneReceiver
from rtl.link.lanes.lane_sender import LaneSender

__all__ = ["LanePairTop"]


_SHOWN = (
    "o_valid", "o", "aligned", "realign", "locked", "mask", "partner_mask", "weak_lanes", "dead_lanes",
    "width", "version", "corrections", "markers", "map_changes", "missed",
)  # fmt: skip


class LanePairTop(wiring.Component):
    """`end[e]` has the pins of both ends. `broken`: by lane of the wires that leave the end: 0 whole, 1 zeros, 2 ones,
    3 noise, 4 holds its last word; `flip`: added to the words in this cycle.

    delay: cycles on the wires, each way. Faults of the sender, then those of the receiver, in both ends.
    """

    def __init__(self, cfg: LinkConfig, interval: int, delay: int):
        self.cfg = cfg
        self.delay = delay
        self.physical = p = physical_lanes(cfg)
        self.senders = [LaneSender(cfg, interval) for _ in (0, 1)]
        self.receivers = [LaneReceiver(cfg, interval) for _ in (0, 1)]
        pins = {
            "i": In(stream.Signature(beat_layout(cfg))),
            "broken": In(data.ArrayLayout(unsigned(3), p)),
            "flip": In(lanes_layout(cfg)),
            "align": In(1),
            "fix_valid": In(1),
            "fix_lost": In(1),
            "fix": In(FIX),
            "clear": In(1),
            "wire_valid": Out(1),
            "send_width": Out(5),
            "sent_marker": Out(1),
            **{name: self.receivers[0].signature.members[name] for name in _SHOWN},
        }
        super().__init__({"end": Out(wiring.Signature(pins)).array(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for e, (sender, receiver) in enumerate(zip(self.senders, self.receivers)):
            m.submodules[f"sender_{e}"], m.submodules[f"receiver_{e}"] = sender, receiver
            end = self.end[e]
            wiring.connect(m, wiring.flipped(end.i), sender.i)
            m.d.comb += [
                sender.align.eq(end.align),
                sender.mask.eq(receiver.partner_mask),
                sender.hear.eq(receiver.mask),
                sender.here.eq(receiver.locked),
                receiver.align.eq(end.align),
                receiver.fix_valid.eq(end.fix_valid),
                receiver.fix_lost.eq(end.fix_lost),
                receiver.fix.eq(end.fix),
                receiver.clear.eq(end.clear),
                end.wire_valid.eq(sender.valid),
                end.send_width.eq(sender.width),
                end.sent_marker.eq(sender.sent_marker),
            ]
            for name in _SHOWN:
                m.d.comb += getattr(end, name).eq(getattr(receiver, name))
            words = self._wires(m, e, sender)
            late = delayed(m, Cat(sender.valid, words), self.delay, f"wires_{e}")
            m.d.comb += [
                self.receivers[1 - e].valid.eq(late[0]),
                Value.cast(self.receivers[1 - e].lanes).eq(late[1:]),
            ]
        return m

    def _wires(self, m: Module, e: int, sender: LaneSender) -> Value:
        """The words behind the faults of the wires."""
        found = []
        for p in range(self.physical):
            word = sender.lanes[p]
            noise = Signal(64, name=f"noise_{e}_{p}", init=(0x9E3779B97F4A7C15 * (p + 1 + 32 * e)) % (1 << 64))
            mixed = noise ^ (noise << 13)[:64]
            mixed = mixed ^ (mixed >> 7)
            m.d.sync += noise.eq(mixed ^ (mixed << 17)[:64])
            held = Signal(64, name=f"held_{e}_{p}")
            broken = self.end[e].broken[p]
            with m.If(sender.valid & (broken != 4)):
                m.d.sync += held.eq(word)
            out = Signal(64, name=f"wire_{e}_{p}")
            with m.Switch(broken):
                with m.Case(0):
                    m.d.comb += out.eq(word)
                with m.Case(2):
                    m.d.comb += out.eq((1 << 64) - 1)
                with m.Case(3):
                    m.d.comb += out.eq(noise)
                with m.Case(4):
                    m.d.comb += out.eq(held)
            found.append(out ^ self.end[e].flip[p])
        return Cat(found)
