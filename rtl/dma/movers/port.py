"""One AXI4 port and the movers that share it."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.axi import URGENT_QOS, AxiSignature, axi_size
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.dma.layouts import ar_burst

__all__ = ["Port", "movers_of"]

_INCR = 1
_GRANTS = 4  # bursts whose beats may still be sent
_BEFORE_FIRST = 2  # of these, of movers that do not go first: W is in the order of AW


def movers_of(cfg: Config, port: int) -> range:
    """The movers of a port: neighbours."""
    share = cfg.dma.engines // cfg.hbm.ports
    return range(port * share, (port + 1) * share)


class Port(wiring.Component):
    """Requests of the movers in turn; ids are the movers' numbers; beats of a burst stay together.

    `read[k]`, `write[k]`: bursts of the k-th mover of this port. `beat_valid`, `b_valid`: for whom the beat
    or answer is; its data are on the port itself. `w_*`: the beats of each mover, `w_take` moves it on.
    `more`: ids of movers beside those of the configuration; `first`: of those that go before all others, with
    URGENT_QOS. They come behind the others.
    Timing: one AR, R, AW, W and B a cycle; AR and AW leave through a register.
    """

    def __init__(self, cfg: Config, index: int, more: tuple[int, ...] = (), first: tuple[int, ...] = ()):
        self.cfg = cfg
        self.movers = (*movers_of(cfg, index), *more, *first)
        self.first = len(first)
        n = len(self.movers)
        burst = stream.Signature(ar_burst(cfg))
        port = cfg.hbm.port_bytes
        # seen by proofs too
        self.grants = Fifo(data.StructLayout({"mover": range(max(2, n)), "length": 8}), _GRANTS)
        self.count = Signal(8)  # beats of the oldest grant that were sent
        super().__init__(
            {
                "read": In(burst).array(n),
                "write": In(burst).array(n),
                "beat_valid": Out(n),
                "w_valid": In(n),
                "w_data": In(8 * port).array(n),
                "w_strobe": In(port).array(n),
                "w_take": Out(n),
                "b_valid": Out(n),
                "b_ready": In(n),
                "axi": Out(AxiSignature(port)),
                "refused": Out(1),
                "moves": Out(1),
                "busy": Out(1),
            }
        )

    def _ask(self, m: Module, kind: str, channel: str, admit: Value, more: Value) -> tuple[Signal, Value]:
        """Arbiter and register of AR or AW, which take a burst if `admit`, of those that do not go first if `more` too:
        (one-hot who was taken now, length of its burst)."""
        n = len(self.movers)
        port = self.cfg.hbm.port_bytes
        offers = getattr(self, kind)
        m.submodules[f"{kind}_turn"] = turn = RoundRobin(n)
        valid = getattr(self.axi, f"{channel}valid")
        burst = Signal(ar_burst(self.cfg), name=f"{channel}_burst")
        chosen = Signal(ar_burst(self.cfg), name=f"{channel}_next")
        owner = Signal(6, name=f"{channel}_owner")
        free = Signal(name=f"{channel}_free")
        taken = Signal(n, name=f"{channel}_taken")
        asks = Cat(o.valid for o in offers)
        passes: Value = Const(0)  # one that goes first
        if self.first:
            urgent = Signal(n, name=f"{channel}_urgent")
            m.d.comb += urgent.eq(asks & Const((1 << n) - (1 << n - self.first), n))
            passes = urgent.any() & ~fault("a port has no class that goes first")
            asks = Mux(passes, urgent, asks)
        m.d.comb += [
            turn.requests.eq(asks),
            free.eq((~valid | getattr(self.axi, f"{channel}ready")) & admit & (passes | more)),
            turn.accept.eq(free),
            taken.eq(Mux(free, turn.grant, 0)),
            getattr(self.axi, f"{channel}id").eq(owner),
            getattr(self.axi, f"{channel}addr").eq(burst.beat << ceil_log2(port)),
            getattr(self.axi, f"{channel}len").eq(burst.length),
            getattr(self.axi, f"{channel}size").eq(axi_size(port)),
            getattr(self.axi, f"{channel}burst").eq(_INCR),
        ]
        with m.If(fault("a request of a mover replaces one that waits")):
            m.d.comb += free.eq(admit)
        with m.If(getattr(self.axi, f"{channel}ready")):
            m.d.sync += valid.eq(0)
        for k, offer in enumerate(offers):
            m.d.comb += offer.ready.eq(taken[k])
            with m.If(turn.grant[k]):
                m.d.comb += chosen.eq(offer.payload)
            with m.If(taken[k]):
                m.d.sync += [valid.eq(1), owner.eq(self.movers[k]), burst.eq(offer.payload)]
                if self.first:
                    qos = URGENT_QOS if k >= n - self.first else 0
                    m.d.sync += getattr(self.axi, f"{channel}qos").eq(qos)
        return taken, chosen.length

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = len(self.movers)
        axi = self.axi
        m.submodules.grants = grants = self.grants

        always = Const(1)
        self._ask(m, "read", "ar", always, always)
        more: Value = always
        if self.first:
            more = (grants.level < _BEFORE_FIRST) | fault(
                "a port takes as many bursts before the class that goes first"
            )
        taken, length = self._ask(m, "write", "aw", grants.i.ready, more)
        m.d.comb += [grants.i.valid.eq(taken.any()), grants.i.payload.length.eq(length)]
        for k in range(n):
            with m.If(taken[k]):
                m.d.comb += grants.i.payload.mover.eq(k)

        # Beats of the oldest grant.
        mover = grants.o.payload.mover
        count = self.count
        sends = Signal()
        m.d.comb += [
            axi.wvalid.eq(grants.o.valid & (self.w_valid >> mover)[0]),
            axi.wlast.eq(count == grants.o.payload.length),
            sends.eq(axi.wvalid & axi.wready),
            self.w_take.eq(Mux(sends, 1 << mover, 0)),
            grants.o.ready.eq(sends & axi.wlast),
        ]
        with m.If(fault("a burst's beats go before its address is offered")):
            m.d.comb += axi.wvalid.eq((self.w_valid >> mover)[0])
        with m.If(fault("the beat before the last is marked as the last")):
            m.d.comb += axi.wlast.eq(count + 1 == grants.o.payload.length)
        with m.If(grants.o.valid):
            m.d.comb += [
                axi.wdata.eq(Array(self.w_data)[mover]),
                axi.wstrb.eq(Array(self.w_strobe)[mover]),
            ]
        with m.If(sends):
            m.d.sync += count.eq(Mux(axi.wlast, 0, count + 1))

        m.d.comb += [
            axi.rready.eq(1),
            self.beat_valid.eq(Cat(axi.rvalid & (axi.rid == e) for e in self.movers)),
            self.b_valid.eq(Cat(axi.bvalid & (axi.bid == e) for e in self.movers)),
            axi.bready.eq((self.b_valid & self.b_ready).any()),
            self.refused.eq((axi.arvalid & ~axi.arready) | (axi.awvalid & ~axi.awready) | (axi.wvalid & ~axi.wready)),
            self.moves.eq(axi.rvalid | sends),
            self.busy.eq(axi.arvalid | axi.awvalid | grants.o.valid),
        ]
        return m
