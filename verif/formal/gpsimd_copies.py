"""Copies: what the DMA is given is what a core has pushed; each copy that completes is counted once."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.utils import exact_log2

from rtl.base.fifo import Fifo
from rtl.contract.config import Config, named
from rtl.contract.gpsimd import COPIES_MAX
from rtl.contract.isa import INSTRUCTION_BYTES
from rtl.gpsimd.copies import Copies, Stage
from rtl.gpsimd.reach import in_local
from verif.formal.free import StandIn, drive, fifo_sound, ports
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "CopiesProof"]


class CopiesProof(wiring.Component):
    """Any pushes; a core asks until its descriptor has been read, or is stopped. One core is followed, and one row of
    its memory; the DMA completes what it has taken, or halts for good."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fifos: list[Fifo] = []

        def kept(*given: object) -> Fifo:
            fifos.append(Fifo(*given))  # type: ignore[arg-type]
            return fifos[-1]

        copies = Copies(self.cfg)
        m.submodules.copies = StandIn(copies, Fifo=kept).elaborate(platform)
        (owners,) = fifos
        without_reset(m)
        for _, member, port in ports(copies):
            if member.is_port and member.flow == wiring.In:
                drive(m, port)
        drive(m, copies.o.ready)

        core = AnyConst(exact_log2(copies.cores))
        push, taken, address, pc = (Array(of)[core] for of in (copies.push, copies.taken, copies.address, copies.pc))
        was = {name: Signal.like(of, name=f"was_{name}") for name, of in (("address", address), ("pc", pc))}
        asked = Signal()
        m.d.sync += [asked.eq(push & ~taken), was["address"].eq(address), was["pc"].eq(pc)]
        m.d.comb += Assume(~(asked & push) | ((address == was["address"]) & (pc == was["pc"])))
        self._memory(m, copies, core, push, taken, address)
        self._counts(m, copies, owners, core, taken)

        # an offer stays
        offered, word = Signal(), Signal(8 * INSTRUCTION_BYTES)
        m.d.sync += [offered.eq(copies.o.valid & ~copies.o.ready), word.eq(copies.o.payload)]
        m.d.comb += Assert(~offered | (copies.o.valid & (Value.cast(copies.o.payload) == word)))
        return m

    def _memory(self, m: Module, copies: Copies, core: Value, push: Value, taken: Value, address: Value) -> None:
        """What is taken is a descriptor's place, and each of its rows is what the memory has there."""
        reading = copies.stage == Stage.READ
        working = reading | (copies.stage == Stage.OFFER)
        row_bits, row_bytes = exact_log2(copies.row_bytes), copies.row_bytes
        lines = INSTRUCTION_BYTES // row_bytes
        row, content = AnyConst(len(copies.row)), AnyConst(8 * row_bytes)
        reads = Array(copies.line_en)[core]
        here, first = Signal(), Signal(len(copies.row))
        m.d.sync += here.eq(reads & (copies.row == row))
        with m.If(taken):
            m.d.sync += first.eq(address >> row_bits)
        good = (address[: exact_log2(INSTRUCTION_BYTES)] == 0) & in_local(address, self.cfg.gpsimd.local_bytes)
        m.d.comb += [
            Assume(~here | (Array(copies.line)[core] == content)),
            Assert(~taken | (push & good)),
            Assert(~reads | push),
            Assert((copies.taken & (copies.taken - 1)) == 0),
            Cover(copies.o.valid & (copies.owner == (1 << core))),
        ]

        # for the induction: whose turn it is, which lines are there already
        mine = (copies.owner == (1 << core)) & working
        came, wanted = copies.came, Mux(reading, (address >> row_bits)[: len(row)], first)
        m.d.comb += [
            Assert(~working | (copies.owner == (Const(1, copies.cores) << copies.kept.core)[: copies.cores])),
            Assert(~(reading & mine & push) | (good & (copies.first == wanted))),
            Assert(~reading | ((copies.asked == came + copies.arrives) & (copies.asked <= lines))),
            Assert(reading | ~copies.arrives | ~working),
            Assert(~working | reading | (came == lines)),
        ]
        m.d.comb += Assert(~(reading & mine & push & copies.arrives) | (here == (row == (wanted + came)[: len(row)])))
        for n in range(lines):
            for done in range(n + 1, lines + 1):
                place = copies.held[8 * row_bytes * (lines - done + n) :][: 8 * row_bytes]
                there = (came == done) & mine & (push | ~reading)
                m.d.comb += Assert(~(there & (row == (wanted + n)[: len(row)])) | (place == content))

    def _counts(self, m: Module, copies: Copies, owners: Fifo, core: Value, taken: Value) -> None:
        """Copies of the core that were taken and have not been counted are those under way, four at most."""
        begun, free, done = Signal(32), Array(copies.free)[core], Array(copies.done)[core]
        with m.If(taken):
            m.d.sync += begun.eq(begun + 1)
        under_way = (COPIES_MAX - free)[:3]
        filled = [
            ((n - owners.read)[:3] < owners.level) & (entry.core == core) for n, entry in enumerate(owners.entries)
        ]
        waiting = sum(filled, Const(0)) + ((copies.stage == Stage.OFFER) & (copies.kept.core == core))
        m.d.comb += [
            Assume(copies.due + copies.ended <= owners.level),
            Assert((begun - done)[:32] == under_way),
            Assert(free <= COPIES_MAX),
            Assert((copies.stage != Stage.READ) | (copies.kept.core != core) | (free != 0)),
            Assert(under_way == waiting),
            Assert(fifo_sound(owners)),
            Assert(copies.due <= owners.level),
            Assert((under_way == 0) | copies.active | copies.failed),
            Cover(done == 1),
            Cover(free == COPIES_MAX - 2),
        ]


PROOFS = (
    Proof(
        name="gpsimd_copies",
        make=lambda: CopiesProof(named("full")),
        depth=2,
        cover_depth=20,
        fault_depth=10,
        faults=(
            "a copy of a core that has completed is not counted",
            "a line of a descriptor is read in another's place",
            "a descriptor is read from anywhere",
            "a run is done before its copies",
        ),
    ),
)
