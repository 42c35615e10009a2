"""Who reaches which SBUF bank in a cycle. One for the read ports, one for the write ports."""

from amaranth.hdl import Cat, Const, DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from rtl.base.arbiter import Aged
from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS, sbuf_word_bits
from rtl.contract.config import Config

__all__ = ["MOVER_PATIENCE_CYCLES", "SbufArbiter", "row_bits"]

MOVER_PATIENCE_CYCLES = 8
"""A mover refused this often in a row goes first: it is served in its ninth cycle at the latest."""


def row_bits(cfg: Config) -> int:
    """Bits of a row address in a bank."""
    return ceil_log2(cfg.sbuf.partition_bytes // 8 // cfg.sbuf.banks)


class SbufArbiter(wiring.Component):
    """Grants banks, per quadrant, to engine ports and to movers.

    Engine ports: the lower its number, the higher its priority; a request is granted in all quadrants of
    its mask or not at all, and only what is granted blocks others. A mover needs both banks of its
    pair in its own group and takes what the engines of its quadrant leave. After
    MOVER_PATIENCE_CYCLES refusals in a row its banks are closed to engines for the cycle; movers never
    meet each other, so it is served then, whatever else is asked.

    `adds`: each mover's group also reads the old bytes of its sums, `add_*`, after the mover, beside it if their pairs
    differ. It ages alike, and if it has and the mover has not it goes first: it is served in its tenth cycle at
    the latest. Their ages are in `add_domain`.

    `way`: read or write, what the ports ask for, in names of faults.
    Timing: combinational, but for the ages. `grant` may be 1 without `valid`.
    Arrays: [port][quadrant]; [mover]; bank bits are packed [quadrant][bank].
    """

    def __init__(self, cfg: Config, ports: int, way: str = "request", *, adds: bool = False, add_domain: str = "sync"):
        self.cfg = cfg
        self.add_domain = add_domain
        self.ports = ports
        self.way = way
        self.adds = adds
        words = data.ArrayLayout(sbuf_word_bits(cfg), QUADRANTS)
        banks = QUADRANTS * cfg.sbuf.banks
        super().__init__(
            {
                "valid": In(ports),
                "quadrants": In(data.ArrayLayout(QUADRANTS, ports)),
                "words": In(data.ArrayLayout(words, ports)),
                "grant": Out(ports),
                "mover_valid": In(cfg.dma.engines),
                "mover_pair": In(data.ArrayLayout(sbuf_word_bits(cfg) - 1, cfg.dma.engines)),
                "mover_grant": Out(cfg.dma.engines),
                **(
                    {
                        "add_valid": In(cfg.dma.engines),
                        "add_pair": In(data.ArrayLayout(sbuf_word_bits(cfg) - 1, cfg.dma.engines)),
                        "add_grant": Out(cfg.dma.engines),
                    }
                    if adds
                    else {}
                ),
                "refused": Out(ports + (1 + adds) * cfg.dma.engines),  # engine ports, movers, then sums
                "use": Out(data.ArrayLayout(banks, ports)),  # banks a port has in this cycle
                "rows": Out(data.ArrayLayout(row_bits(cfg), banks)),  # row of the engine in a bank
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = self.cfg.sbuf.banks
        bank_bits = exact_log2(banks)
        movers = self.cfg.dma.engines
        groups = movers // QUADRANTS  # of a quadrant

        # what movers need; the banks closed to engines by the urgent ones
        needs: list[Signal] = []
        urgent: list[Signal] = []
        for e in range(movers):
            m.submodules[f"age_{e}"] = age = Aged(MOVER_PATIENCE_CYCLES, f"mover {self.way}")
            need = Signal(banks, name=f"need_{e}")
            m.d.comb += [
                need.eq(0b11 << (self.mover_pair[e][: bank_bits - 1] << 1)),
                age.request.eq(self.mover_valid[e]),
                age.grant.eq(self.mover_grant[e]),
            ]
            needs.append(need)
            urgent.append(age.urgent)
        waits = [self.mover_valid[e] for e in range(movers)]  # of each in `needs`
        if self.adds:
            for e in range(movers):
                age = Aged(MOVER_PATIENCE_CYCLES, f"sum's {self.way}")
                m.submodules[f"add_age_{e}"] = DomainRenamer(self.add_domain)(age)
                need = Signal(banks, name=f"add_need_{e}")
                m.d.comb += [
                    need.eq(0b11 << (self.add_pair[e][: bank_bits - 1] << 1)),
                    age.request.eq(self.add_valid[e]),
                    age.grant.eq(self.add_grant[e]),
                ]
                needs.append(need)
                urgent.append(age.urgent)
                waits.append(self.add_valid[e])
        closed = Signal(QUADRANTS * banks)
        with m.If(Cat(urgent).any()):
            for q in range(QUADRANTS):
                closing = 0
                for e in range(q * groups, (q + 1) * groups):
                    for n in range(e, len(needs), movers):
                        closing |= Mux(urgent[n] & waits[n], needs[n], 0)
                m.d.comb += closed[q * banks : (q + 1) * banks].eq(closing)

        # engines by priority
        checked = Signal(QUADRANTS * banks)
        m.d.comb += checked.eq(
            Mux(
                fault(f"a {self.way} is granted although its last quadrant is taken"),
                (1 << (QUADRANTS - 1) * banks) - 1,
                -1,
            )
        )
        taken = Signal(QUADRANTS * banks, name="taken_0")
        reported = [Signal(name=f"reported_{p}") for p in range(self.ports)]
        for p in range(self.ports):
            want = Signal(QUADRANTS * banks, name=f"want_{p}")
            after = Signal(QUADRANTS * banks, name=f"taken_{p + 1}")
            asked = Cat(
                Mux(self.quadrants[p][q], Const(1, banks) << self.words[p][q][:bank_bits], 0)[:banks]
                for q in range(QUADRANTS)
            )
            m.d.comb += [
                want.eq(Mux(self.valid[p], asked, 0)),
                self.grant[p].eq(~(want & (taken | closed) & checked).any()),
                self.use[p].eq(Mux(self.grant[p], want, 0)),
                after.eq(taken | self.use[p]),
                reported[p].eq(self.valid[p] & ~self.grant[p]),
            ]
            with m.If(fault(f"a {self.way} refused because of an aged mover is not reported") & (want & closed).any()):
                m.d.comb += reported[p].eq(0)
            taken = after

        # movers take what is left, then their sums
        for e in range(movers):
            q = e // groups
            left = Signal(banks, name=f"left_{e}")
            m.d.comb += [
                left.eq(~taken[q * banks : (q + 1) * banks]),
                self.mover_grant[e].eq(~(needs[e] & ~left).any()),
            ]
            if self.adds:
                with m.If(self.add_valid[e]):
                    self._add(m, e, needs[e], needs[movers + e], urgent[movers + e] & ~urgent[e], left)
        refused = [*reported, self.mover_valid & ~self.mover_grant]
        if self.adds:
            refused.append(self.add_valid & ~self.add_grant)
        m.d.comb += self.refused.eq(Cat(*refused))

        # the row of the one engine port in a bank
        asks = self.valid.any()  # else a simulator need not look
        for q in range(QUADRANTS):
            for b in range(banks):
                at = q * banks + b
                row = 0
                for p in range(self.ports):
                    row |= Mux(self.use[p][at], self.words[p][q][bank_bits:], 0)
                m.d.comb += self.rows[at].eq(Mux(asks, row, 0))
        return m

    def _add(self, m: Module, e: int, mover: Value, need: Value, aged: Value, left: Value) -> None:
        """Grants of a mover and of its sums, where banks that are `left` may be wanted by both."""
        meets = (mover & need).any()
        m.d.comb += [
            self.mover_grant[e].eq(~(mover & ~left).any() & ~(meets & aged)),
            self.add_grant[e].eq(
                ~(need & ~left).any()
                & ~(self.mover_valid[e] & meets & ~aged & ~fault("a mover and its sums read one bank at once"))
            ),
        ]
