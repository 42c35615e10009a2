"""Words of SBUF for the vector units of all GPSIMD cores, in one access a cycle each way."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import RoundRobin
from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS, SbufReadSignature, SbufWriteSignature
from rtl.contract.config import Config
from rtl.contract.gpsimd import cores, lanes
from rtl.gpsimd.lane_rows import lane_request

__all__ = ["LaneBus", "LaneSignature"]


class LaneSignature(wiring.Signature):
    """Of a core's LaneRows: `reply` is what a request that was granted has read, one cycle later."""

    def __init__(self, cfg: Config):
        reply = 64 * lanes(cfg.partitions)
        super().__init__({"valid": Out(1), "request": Out(lane_request(cfg)), "ready": In(1), "reply": In(reply)})


class LaneBus(wiring.Component):
    """Requests of `lanes[k]`, of core k, on ports of SBUF that they share.

    Cores in different quadrants go together; of those that write, the ones that write the same bytes of their words as
    the one whose turn it is. Of two cores in a quadrant one goes, then the other.
    Timing: combinational, but for whose turn it is.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.cores = cores(cfg.partitions)
        super().__init__(
            {
                "lanes": In(LaneSignature(cfg)).array(self.cores),
                "sbuf_read": Out(SbufReadSignature(cfg)),
                "sbuf_write": Out(SbufWriteSignature(cfg)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for port, writes in ((self.sbuf_read, 0), (self.sbuf_write, 1)):
            name = "write" if writes else "read"
            m.submodules[name] = turn = RoundRobin(self.cores)
            asks = Signal(self.cores, name=f"{name}_asks")
            goes = Signal(self.cores, name=f"{name}_goes")
            m.d.comb += [
                asks.eq(Cat(core.valid & (core.request.write == writes) for core in self.lanes)),
                turn.requests.eq(asks),
                turn.accept.eq(port.ready),
                port.valid.eq(asks.any()),
            ]
            self._choose(m, asks, goes, turn.grant, name, same_bytes=bool(writes))
            for q in range(QUADRANTS):
                mine = [k for k in range(self.cores) if q in self._quadrants(k)]
                m.d.comb += port.quadrants[q].eq(Cat(goes[k] for k in mine).any())
                for k in mine:
                    with m.If(goes[k]):
                        m.d.comb += port.word[q].eq(self.lanes[k].request.word)
            for k, core in enumerate(self.lanes):
                with m.If(core.request.write == writes):
                    m.d.comb += core.ready.eq(goes[k] & port.ready)
        size = 64 * lanes(self.cfg.partitions)
        for k, core in enumerate(self.lanes):
            m.d.comb += core.reply.eq(self.sbuf_read.data[size * k : size * (k + 1)])
        return m

    def _quadrants(self, core: int) -> range:
        """Those that the partitions of a core lie in."""
        first, count = QUADRANTS * core // self.cores, max(1, QUADRANTS // self.cores)
        return range(first, first + count)

    def _choose(self, m: Module, asks: Signal, goes: Signal, turn: Signal, name: str, *, same_bytes: bool) -> None:
        """`goes`: who is served, with the one whose turn it is; what is written by them."""
        which = Signal(8, name=f"{name}_bytes")
        if same_bytes:
            for k, core in enumerate(self.lanes):
                with m.If(turn[k]):
                    m.d.comb += which.eq(core.request.bytes)
        for k, core in enumerate(self.lanes):
            fits = core.request.bytes == which if same_bytes else Const(1)
            fits |= fault("a core writes bytes of its words that another one chose")
            others = [n for n in range(self.cores) if n != k and self._quadrants(n) == self._quadrants(k)]
            blocked = Cat(turn[n] for n in others).any() | Cat(goes[n] for n in others if n < k).any()
            blocked &= ~fault("two cores of a quadrant go to SBUF at once")
            m.d.comb += goes[k].eq(asks[k] & (turn[k] | (fits & ~blocked)))
        if not same_bytes:
            return
        write = self.sbuf_write
        wrong = fault("bytes that one core writes are written of all")
        m.d.comb += [
            write.bytes.eq(Mux(wrong, 0xFF, which)),
            write.data.eq(Cat(core.request.data for core in self.lanes)),
            write.partitions.eq(Cat(Mux(goes[k], core.request.partitions, 0) for k, core in enumerate(self.lanes))),
        ]
