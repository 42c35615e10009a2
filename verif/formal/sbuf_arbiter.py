"""SbufArbiter: no bank twice, all or nothing, and the bounded wait of movers."""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.utils import exact_log2

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config, named
from rtl.memory.sbuf_arbiter import MOVER_PATIENCE_CYCLES, SbufArbiter
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "SbufArbiterProof"]


class SbufArbiterProof(wiring.Component):
    """Any requests at all of three engine ports and of the movers of `cfg`; one mover is followed."""

    PORTS = 3

    def __init__(self, cfg: Config, *, adds: bool = False):
        self.cfg = cfg
        self.adds = adds
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        banks = cfg.sbuf.banks
        bank_bits = exact_log2(banks)
        movers = cfg.dma.engines
        m.submodules.arbiter = arbiter = SbufArbiter(cfg, self.PORTS, adds=self.adds)
        without_reset(m)
        m.d.comb += [arbiter.valid.eq(AnySeq(self.PORTS)), arbiter.mover_valid.eq(AnySeq(movers))]
        for p in range(self.PORTS):
            m.d.comb += arbiter.quadrants[p].eq(AnySeq(QUADRANTS))
            for q in range(QUADRANTS):
                m.d.comb += arbiter.words[p][q].eq(AnySeq(len(arbiter.words[p][q])))
        for e in range(movers):
            m.d.comb += arbiter.mover_pair[e].eq(AnySeq(len(arbiter.mover_pair[e])))

        # engines: all or nothing, and no bank for two
        used = Signal(QUADRANTS * banks, name="used_0")
        for p in range(self.PORTS):
            wanted = Signal(QUADRANTS * banks, name=f"wanted_{p}")
            for q in range(QUADRANTS):
                for b in range(banks):
                    hit = arbiter.valid[p] & arbiter.quadrants[p][q] & (arbiter.words[p][q][:bank_bits] == b)
                    m.d.comb += wanted[q * banks + b].eq(hit)
                    with m.If(arbiter.use[p][q * banks + b]):
                        m.d.comb += Assert(arbiter.rows[q * banks + b] == arbiter.words[p][q][bank_bits:])
            m.d.comb += [
                Assert(arbiter.use[p] == Mux(arbiter.grant[p], wanted, 0)),
                Assert((arbiter.use[p] & used) == 0),
                Assert(arbiter.refused[p] == (arbiter.valid[p] & ~arbiter.grant[p])),
            ]
            after = Signal(QUADRANTS * banks, name=f"used_{p + 1}")
            m.d.comb += after.eq(used | arbiter.use[p])
            used = after

        # movers: only what engines leave
        for e in range(movers):
            q = e * QUADRANTS // movers
            for k in range(banks // 2):
                with m.If(arbiter.mover_grant[e] & (arbiter.mover_pair[e][: bank_bits - 1] == k)):
                    m.d.comb += Assert(~used[q * banks + 2 * k : q * banks + 2 * k + 2].any())
            m.d.comb += Assert(arbiter.refused[self.PORTS + e] == (arbiter.mover_valid[e] & ~arbiter.mover_grant[e]))
        # the first port waits for nobody but an aged mover
        others = arbiter.mover_valid.any()
        if self.adds:
            others = others | arbiter.add_valid.any()
            self._sums(m, arbiter, used)
        with m.If(arbiter.valid[0] & ~arbiter.grant[0]):
            m.d.comb += Assert(others)

        # the wait of any mover
        picked = AnyConst(range(movers))
        valid = arbiter.mover_valid.bit_select(picked, 1)
        grant = arbiter.mover_grant.bit_select(picked, 1)
        m.d.comb += Assume(picked < movers)
        history = Signal(MOVER_PATIENCE_CYCLES + 1)  # refused, the newest cycle at bit 0
        m.d.sync += history.eq((history << 1) | (valid & ~grant))
        m.d.comb += [
            Assert(~history.all()),
            Cover(history[:MOVER_PATIENCE_CYCLES].all() & valid & grant),
            Cover(arbiter.valid[0] & ~arbiter.grant[0]),
            Cover(arbiter.valid.all() & arbiter.grant.all() & arbiter.mover_grant.all() & arbiter.mover_valid.all()),
        ]
        return m

    def _sums(self, m: Module, arbiter: SbufArbiter, used: Signal) -> None:
        """Sums read what engines and the mover of their group leave; the wait of any of them."""
        cfg = self.cfg
        banks = cfg.sbuf.banks
        bank_bits = exact_log2(banks)
        movers = cfg.dma.engines
        m.d.comb += arbiter.add_valid.eq(AnySeq(movers))
        for e in range(movers):
            q = e * QUADRANTS // movers
            pair, other = arbiter.add_pair[e][: bank_bits - 1], arbiter.mover_pair[e][: bank_bits - 1]
            m.d.comb += arbiter.add_pair[e].eq(AnySeq(len(arbiter.add_pair[e])))
            both = arbiter.add_valid[e] & arbiter.add_grant[e] & arbiter.mover_valid[e] & arbiter.mover_grant[e]
            m.d.comb += [
                Assert(~(both & (pair == other))),
                Assert(arbiter.refused[self.PORTS + movers + e] == (arbiter.add_valid[e] & ~arbiter.add_grant[e])),
                Cover(both & (pair != other)),
            ]
            for k in range(banks // 2):
                with m.If(arbiter.add_valid[e] & arbiter.add_grant[e] & (pair == k)):
                    m.d.comb += Assert(~used[q * banks + 2 * k : q * banks + 2 * k + 2].any())
        picked = AnyConst(range(movers))
        m.d.comb += Assume(picked < movers)
        valid = arbiter.add_valid.bit_select(picked, 1)
        grant = arbiter.add_grant.bit_select(picked, 1)
        history = Signal(MOVER_PATIENCE_CYCLES + 2, name="sum_history")
        m.d.sync += history.eq((history << 1) | (valid & ~grant))
        m.d.comb += [Assert(~history.all()), Cover(history[: MOVER_PATIENCE_CYCLES + 1].all() & valid & grant)]


PROOFS = (
    Proof(
        name="sbuf_arbiter_sums",
        make=lambda: SbufArbiterProof(named("tiny"), adds=True),
        depth=MOVER_PATIENCE_CYCLES + 4,
        cover_depth=MOVER_PATIENCE_CYCLES + 4,
        fault_depth=MOVER_PATIENCE_CYCLES + 4,
        faults=(
            "a sum's request that is refused never becomes urgent",
            "a mover and its sums read one bank at once",
        ),
    ),
    Proof(
        name="sbuf_arbiter",
        make=lambda: SbufArbiterProof(named("tiny")),
        depth=MOVER_PATIENCE_CYCLES + 3,
        cover_depth=MOVER_PATIENCE_CYCLES + 3,
        fault_depth=MOVER_PATIENCE_CYCLES + 3,
        faults=(
            "a request is granted although its last quadrant is taken",
            "a mover request that is refused never becomes urgent",
            "a request refused because of an aged mover is not reported",
        ),
    ),
)
