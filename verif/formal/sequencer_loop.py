"""A counted loop of n turns shows its instruction n times, and then the program has ended: for every n.

The program is fixed but for n: a word that sets the counter and n, an instruction, a word that counts and branches.
When words come and are taken is free. That the window holds what came is left to sequencer_order.
"""

from typing import Any

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring

from rtl.base.dma_port import COUNT_BITS
from rtl.contract.config import named
from rtl.contract.sequence import OPERATION, OPERATIONS_AT, SEQUENCE, SEQUENCE_HEADER, SeqOp
from rtl.issue.held_word import HeldWord
from rtl.issue.sequencer import Sequencer
from verif.formal.free import NoRam, StandIn, drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "SequencerLoopProof"]

_LOOK, _KEPT, _OPERATE, _FILL, _SHOW, _STOP = range(6)
_COUNTER, _TURNS, _ZERO = 1, 2, 0
_WINDOW = 4


def _operation(op: SeqOp, d: int = 0, a: int = _ZERO, b: int = _ZERO, immediate: int | None = None) -> int:
    return OPERATION.pack(op=op, d=d, a=a, b=b, immediate_b=int(immediate is not None), immediate=immediate or 0)


def _branch(op: SeqOp, a: int, b: int, target: int) -> int:
    return OPERATION.pack(op=op, a=a, b=b, immediate=target)


def _word(*operations: int) -> int:
    word = SEQUENCE_HEADER.pack(opcode=SEQUENCE)
    return word | sum(one << OPERATIONS_AT + n * OPERATION.width for n, one in enumerate(operations))


class ThreeRegisters(wiring.Component):
    """Stands in for the memory of registers: those that the program uses."""

    def __init__(self, shape: Any, depth: int, init: Any):
        super().__init__({})
        self.values = [Signal(signed(32), name=f"register_{n}") for n in range(3)]
        self._reads: list[Any] = []
        self._write: Any = None

    def read_port(self, domain: str) -> Any:
        """Of one register, combinational."""
        self._reads.append(wiring.Signature({"addr": wiring.In(6), "data": wiring.Out(signed(32))}).create())
        return self._reads[-1]

    def write_port(self) -> Any:
        """Of one register."""
        signature = {"addr": wiring.In(6), "data": wiring.In(signed(32)), "en": wiring.In(1)}
        self._write = wiring.Signature(signature).create()
        return self._write

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for read in self._reads:
            m.d.comb += read.data.eq(Array(self.values)[read.addr])
        for n, value in enumerate(self.values):
            with m.If(self._write.en & (self._write.addr == n)):
                m.d.sync += value.eq(self._write.data)
        return m


class SequencerLoopProof(wiring.Component):
    """The loop; `shown` counts."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        s = Sequencer(named("tiny"), _WINDOW, 4)
        turns = Signal(31)
        m.d.comb += [turns.eq(AnyConst(31)), Assume(turns != 0)]
        sets = _word(_operation(SeqOp.AND, _COUNTER), _operation(SeqOp.ADD, _TURNS, immediate=0))
        at = OPERATIONS_AT + OPERATION.width + OPERATION.offset("immediate")
        counts = _word(
            _operation(SeqOp.ADD, _COUNTER, _COUNTER, immediate=1), _branch(SeqOp.BRANCH_LESS, _COUNTER, _TURNS, 1)
        )
        first_word = Cat(Const(sets & (1 << at) - 1, at), turns, Const(sets >> at + 31, 1024 - at - 31))
        words = [first_word, Const(17, 1024), Const(counts, 1024), Const(0, 1024)]

        parts: dict[str, Any] = {}

        class ProgramRam(NoRam):
            """Holds the program."""

            def elaborate(self, platform: object) -> Module:
                m = Module()
                row = parts["row"] = Signal(2)
                with m.If(self.read_en):
                    m.d.sync += row.eq(self.read_address)
                m.d.comb += self.read_data.eq(Array(words)[row])
                return m

        def registers(shape: Any, depth: int, init: Any) -> ThreeRegisters:
            parts["registers"] = ThreeRegisters(shape, depth, init)
            return parts["registers"]

        def held_word() -> HeldWord:
            parts["held"] = HeldWord()
            return parts["held"]

        m.submodules.sequencer = StandIn(
            s, Ram=ProgramRam, HeldWord=held_word, **{"rtl.issue.sequence_executor.Memory": registers}
        ).elaborate(platform)
        without_reset(m)
        for free in (s.words.valid, s.o.ready, s.drained, s.value):
            drive(m, free)
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        shown = Signal(COUNT_BITS)
        taken = s.o.valid & s.o.ready
        m.d.sync += shown.eq(shown + taken)
        m.d.comb += [
            s.start.eq(first),
            s.count.eq(3),
            s.seek.ready.eq(AnySeq(1)),
            s.words.payload.eq(Array(words)[s.come[:2]]),
            Assert(first | ~s.ended | (shown == turns)),
            Assert(shown <= turns),
            Assert(~taken | ((s.o.payload.word == 17) & (s.o.payload.cause == 0))),
            Assert(s.state != _STOP),
            Assert(~s.seek.valid & ~s.peek.valid),
            Cover(s.ended & (shown == 3)),
        ]
        self._invariants(m, s, parts, words, turns, shown, first)
        return m

    @staticmethod
    def _invariants(
        m: Module, s: Sequencer, parts: dict[str, Any], words: list[Value], turns: Signal, shown: Signal, first: Signal
    ) -> None:
        """Where the loop is, and what its registers hold there."""
        _, counter, limit = parts["registers"].values
        whole = Value.cast(parts["held"].word)
        holds = (s.state == _OPERATE) | (s.state == _SHOW)
        ready = (limit == turns) & s.executor.known[_COUNTER] & s.executor.known[_TURNS]
        m.d.comb += [
            Assert((s.state != _FILL) & (s.next <= 3) & (s.come <= 3) & (s.since == 0)),
            Assert((s.state == _LOOK) | (s.next < s.come)),
            Assert((s.state == _LOOK) | (s.next < 3)),
            Assert((s.state != _LOOK) | (s.next == s.come)),
            Assert((s.state != _KEPT) | (parts["row"] == s.next)),
            Assert(~holds | (whole == Array(words)[s.next[:2]])),
            Assert((s.state != _OPERATE) | (s.next == 0) | (s.next == 2)),
            Assert((s.state != _OPERATE) | (s.executor.turn <= 2)),
            Assert((s.state != _SHOW) | ((s.next == 1) & (s.o.payload.cause == 0))),
            Assert(s.alone <= (s.next == 1) + (s.next == 3)),
            Assert(~s.executor.known[_ZERO]),
        ]
        done = (s.state == _OPERATE) & (s.executor.turn != 0)  # of the word that counts: it has counted
        with m.Switch(s.next):
            with m.Case(0):
                m.d.comb += Assert(shown == 0)
                with m.If((s.state == _OPERATE) & (s.executor.turn >= 1)):
                    m.d.comb += Assert(s.executor.known[_COUNTER] & (counter == 0))
                with m.If((s.state == _OPERATE) & (s.executor.turn == 2)):
                    m.d.comb += Assert(ready)
            with m.Case(1):
                m.d.comb += Assert(ready & (counter == shown) & (shown < turns))
            with m.Case(2):
                m.d.comb += Assert(ready & (counter + 1 == shown + Mux(done, 1, 0)) & (shown <= turns) & (shown != 0))
            with m.Case(3):
                m.d.comb += Assert(first | (shown == turns))


PROOFS = (
    Proof(
        name="sequencer_loop",
        make=SequencerLoopProof,
        depth=2,
        cover_depth=30,
        fault_depth=20,
        faults=("a branch goes one word too far",),
    ),
)
