"""SharedMemory: words and rows of all cores are what was stored last; nobody waits for ever."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Cat, Cover, Module, Signal, Value
from amaranth.lib import wiring

from rtl.base.arbiter import RoundRobin
from rtl.contract.config import Config, named
from rtl.gpsimd.shared_memory import SharedMemory
from verif.formal.arbiter import ones, turn_comes
from verif.formal.free import FollowedRam, StandIn, drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "SharedMemoryProof"]


class SharedMemoryProof(wiring.Component):
    """Any accesses of all cores; one byte, chosen by the prover, is followed, and the wait of one core each way."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory = SharedMemory(self.cfg)
        rows, log_lanes = memory.rows, (memory.lanes - 1).bit_length()
        row, byte, core = AnyConst(len(rows[0].row)), AnyConst(2 + log_lanes), AnyConst((memory.cores - 1).bit_length())
        turns: list[RoundRobin] = []
        rams: list[FollowedRam] = []

        def turn(count: int) -> RoundRobin:
            turns.append(RoundRobin(count))
            return turns[-1]

        def ram(*shape: int) -> FollowedRam:
            rams.append(FollowedRam(*shape, followed=row))
            return rams[-1]

        m.submodules.memory = StandIn(memory, RoundRobin=turn, Ram=ram).elaborate(platform)
        without_reset(m)
        for one in rows:
            for port in (one.line_en, one.line_row, one.row_en, one.row, one.row_data, one.row_mask):
                drive(m, port)
        access = memory.access
        for port in (memory.word_en, access):
            drive(m, port)

        # the byte, as those who store leave it
        def bit8(words: Value, at: Value) -> Value:
            return words.word_select(at, 8)

        want = Signal(8)
        word_row, word_byte = access.address[2 + log_lanes :][: len(row)], Cat(byte[:2], access.address[2:][:log_lanes])
        by_word = memory.word_en & access.write & memory.word_ready & (word_row == row) & (word_byte == byte)
        for one in rows:
            with m.If(one.row_en & one.row_ready & (one.row == row) & one.row_mask.bit_select(byte, 1)):
                m.d.sync += want.eq(bit8(one.row_data, byte))
        with m.If(by_word & access.mask.bit_select(byte[:2], 1)):
            m.d.sync += want.eq(bit8(access.data, byte[:2]))
        m.d.comb += Assert(bit8(rams[0].kept, byte) == want)

        # what is loaded: the byte as it was when it was asked for
        word, loads, line, was = Signal(), Signal(), Signal(memory.cores), Signal(8)
        m.d.comb += loads.eq(memory.word_en & ~access.write & memory.word_ready)
        m.d.sync += [
            word.eq(loads & (word_row == row) & (word_byte == byte)),
            line.eq(Cat(one.line_en & one.line_ready & (one.line_row == row) for one in rows)),
            was.eq(want),
        ]
        m.d.comb += Assert(~word | (bit8(memory.word, byte[:2]) == was))
        m.d.comb += [Assert(~line[k] | (bit8(one.line, byte) == was)) for k, one in enumerate(rows)]

        # one access a cycle each way, somebody's if anybody asks; the wait of one
        lines, stores = (
            (
                Cat(getattr(one, f"{name}_en") for one in rows),
                Cat(getattr(one, f"{name}_en") & getattr(one, f"{name}_ready") for one in rows),
            )
            for name in ("line", "row")
        )
        for name, (asks, served), of_word, writes, way in (
            ("line", lines, loads, 0, turns[0]),
            ("row", stores, memory.word_en & access.write & memory.word_ready, 1, turns[1]),
        ):
            asked = memory.word_en & (access.write == writes)
            waited, passed = Signal(name=f"{name}_word_waited"), Signal(range(2 * memory.cores), name=f"{name}_passed")
            m.d.sync += waited.eq(asked & ~of_word)
            with m.If(~asks.bit_select(core, 1) | served.bit_select(core, 1)):
                m.d.sync += passed.eq(0)
            with m.Elif(served.any()):
                m.d.sync += passed.eq(passed + 1)
            m.d.comb += [
                Assert(ones(served) + of_word <= 1),
                Assert((served.any() | of_word) == (asks.any() | asked)),
                Assert(~(waited & asked) | of_word),  # a word is the next
                Assert(passed + turn_comes(m, way, core) <= memory.cores - 1),
                Cover(passed == memory.cores // 2),
                Cover(waited & of_word),
            ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_shared",
        make=lambda: SharedMemoryProof(named("small")),
        depth=2,
        cover_depth=8,
        fault_depth=8,
        short=True,
        faults=("a row of shared memory goes to the core beside",),
    ),
)
