"""A sender whose flits go to a receiver at once."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link_config import LinkConfig
from rtl.link.framing.receive_path import ReceivePath
from rtl.link.framing.send_path import SendPath

__all__ = ["FramingTop"]


class FramingTop(wiring.Component):
    """SendPath and ReceivePath; `hold` stops the flits between them, `moves` and `last` tell of each beat."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.sends = SendPath(self.cfg)
        self.receives = ReceivePath(self.cfg)
        ours = dict(self.sends.signature.members)
        theirs = dict(self.receives.signature.members)
        names = ("packet", "room", "free", "pause", "spend", "account", "clear")
        self.sender = [n for n in names]
        self.receiver = ["request", "response", "freed", "freed_account", "bad_unit", "overrun"]
        super().__init__(
            {
                **{n: ours[n] for n in self.sender},
                **{n: theirs[n] for n in self.receiver},
                "bad_packet": Out(3),
                "hold": In(1),
                "moves": Out(1),
                "last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sends = sends = self.sends
        m.submodules.receives = receives = self.receives
        for part, names in ((sends, self.sender), (receives, self.receiver)):
            for name in names:
                member = part.signature.members[name]
                if not member.is_port:
                    outer, inner = getattr(self, name), getattr(part, name)
                    ends = (wiring.flipped(outer), inner) if name == "packet" else (inner, wiring.flipped(outer))
                    wiring.connect(m, *ends)
                elif member.flow == In:
                    m.d.comb += getattr(part, name).eq(getattr(self, name))
                else:
                    m.d.comb += getattr(self, name).eq(getattr(part, name))
        m.d.comb += [
            self.bad_packet[0].eq(sends.bad_packet),
            self.bad_packet[1:].eq(receives.bad_packet),
            sends.o.ready.eq(~self.hold),
            self.moves.eq(sends.o.valid & sends.o.ready),
            self.last.eq(sends.o.payload.last),
            receives.valid.eq(self.moves),
            receives.beat.eq(sends.o.payload),
            receives.clear.eq(self.clear),
        ]
        return m
