"""A scalar core beside a memory: what is RAM, what is a device and what is neither is decided here."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.gpsimd.layouts import RETIRED
from rtl.gpsimd.scalar_core import ACCESS, ScalarCore

__all__ = ["DEVICE", "DEVICE_BYTES", "RAM", "RAM_BYTES", "ScalarCoreTop"]

RAM, RAM_BYTES = 0x1000_0000, 0x1_0000
DEVICE, DEVICE_BYTES = 0x4000_0000, 0x100


class ScalarCoreTop(wiring.Component):
    """ScalarCore whose `access_allowed` is true in RAM and for the device. Timing: ScalarCore's."""

    def __init__(self, line_bits: int = 128):
        self.core = ScalarCore(line_bits, RAM)
        super().__init__(
            {
                "line": Out(stream.Signature(32 - self.core.fetch.shift)),
                "reply": In(line_bits),
                "reply_valid": In(1),
                "reply_fault": In(1),
                "access": Out(stream.Signature(ACCESS)),
                "access_reply": In(32),
                "access_reply_valid": In(1),
                "pending": In(3),
                "hart": In(32),
                "mtime": In(64),
                "waits": Out(1),
                "retired": Out(RETIRED),
                "retired_valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        connect(m, core.line, flipped(self.line))
        connect(m, core.access, flipped(self.access))
        address = core.access.payload.address
        m.d.comb += [
            core.reply.eq(self.reply),
            core.reply_valid.eq(self.reply_valid),
            core.reply_fault.eq(self.reply_fault),
            core.access_allowed.eq(
                (address[16:] == RAM >> 16) | (address[8:] == DEVICE >> 8),
            ),
            core.access_reply.eq(self.access_reply),
            core.access_reply_valid.eq(self.access_reply_valid),
            core.pending.eq(self.pending),
            core.hart.eq(self.hart),
            core.mtime.eq(self.mtime),
            self.waits.eq(core.waits),
            self.retired.eq(core.retired),
            self.retired_valid.eq(core.retired_valid),
        ]
        return m
