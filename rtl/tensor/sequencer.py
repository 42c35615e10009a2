"""The order of things in the tensor engine: who gets a command, what it waits for, when it retires."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.dispatch import COMMAND
from rtl.base.fault import fault
from rtl.base.fifo import RamFifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.pattern import operand
from rtl.contract.config import Config
from rtl.contract.isa import Cause, Opcode
from rtl.tensor.bank_watch import BankWatch
from rtl.tensor.drain import DRAIN_COMMAND, matmuls_in_flight
from rtl.tensor.feed_command import ORDER_BITS, feed_command
from rtl.tensor.gang import is_last, together

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Hands LOAD_STATIONARY to `load[g]` and MULTIPLY_MOVING to `stream[g]` of every row group g of its tile, the
    latter also to `target[g]` and `drain[g]` of the tile's last group, all in one cycle and in order. TENSOR_TRANSPOSE
    goes the way of a load, and to `turn[g]` of the last group.

    A stream swaps in the groups that a load reached since the stream before it; there it then awaits the number of
    loads accepted so far, and a load awaits the number of swapping streams accepted before it. Bits of `load_sent`
    and `swapped` count towards the group's `loads` and `swaps`, which its feeds compare; all counts wrap.
    `done` pulses once a command in program order: a load with `load_ended`, a matmul with `matmul_done`, a transpose
    with `turn_done` of the last group of its tile. `cause` is then TAGS for a load that ended with `load_failed`,
    BANK_CONFLICT for a matmul that failed, or for either that came to a bank of PSUM while one of another exit had not
    retired there (BankWatch): nothing orders what they write. `pending`: a command has not retired.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.groups = groups = cfg.tensor.groups
        super().__init__(
            {
                "command": In(stream.Signature(COMMAND)),
                "load": Out(stream.Signature(feed_command())).array(groups),
                "stream": Out(stream.Signature(feed_command())).array(groups),
                "target": Out(stream.Signature(PATTERN_LAYOUT)).array(groups),
                "drain": Out(stream.Signature(DRAIN_COMMAND)).array(groups),
                "turn": Out(stream.Signature(PATTERN_LAYOUT)).array(groups),
                "load_sent": In(groups),
                "load_ended": In(groups),
                "load_failed": In(groups),
                "swapped": In(groups),
                "matmul_done": In(groups),
                "matmul_failed": In(groups),
                "turn_done": In(groups),
                "loads": Out(ORDER_BITS).array(groups),
                "swaps": Out(ORDER_BITS).array(groups),
                "done": Out(1),
                "cause": Out(8),
                "pending": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        groups = range(self.groups)
        depth = 2 * matmuls_in_flight(cfg)
        m.submodules.watch = watch = BankWatch(cfg, depth)
        exits = range(max(2, self.groups))
        entry = data.StructLayout({"is_matmul": 1, "turns": 1, "exit": exits, "clash": 1, **watch.layout})
        m.submodules.order = order = RamFifo(entry, depth)
        word = self.command.payload.word
        is_matmul = Signal()
        turns = Signal()
        accept = Signal()
        member = Signal(self.groups)  # row groups of the tile
        exit_ = Signal(exits)  # the last of them

        rank = exact_log2(self.groups)
        start = word.src0_partition_start[: exact_log2(cfg.tensor.rows)]
        within = start[len(start) - rank :]
        for g in groups:
            m.d.comb += member[g].eq(together(cfg, word.tile, within, g))
            with m.If(member[g] & is_last(cfg, word.tile, g)):
                m.d.comb += exit_.eq(g)
        with m.If(fault("the sums of a half or quarter leave at the last group of the array")):
            m.d.comb += exit_.eq(self.groups - 1)

        ready: list[Value] = [order.i.ready]
        for g in groups:
            load, stream_, target, drain, turn = (
                port[g] for port in (self.load, self.stream, self.target, self.drain, self.turn)
            )
            leaves = member[g] & (exit_ == g)
            ready.append(~member[g] | Mux(is_matmul, stream_.ready, load.ready))
            ready.append(~(leaves & is_matmul) | (target.ready & drain.ready))
            ready.append(~(leaves & turns) | turn.ready)
            m.d.comb += [
                load.valid.eq(accept & ~is_matmul & member[g]),
                stream_.valid.eq(accept & is_matmul & member[g]),
                target.valid.eq(accept & is_matmul & (exit_ == g)),
                drain.valid.eq(accept & is_matmul & (exit_ == g)),
                turn.valid.eq(accept & turns & (exit_ == g)),
                turn.payload.eq(operand(word, "dst")),
                target.payload.eq(operand(word, "dst")),
                drain.payload.pattern.eq(operand(word, "dst")),
                drain.payload.accumulate.eq(word.accumulate),
                drain.payload.rounding.eq(word.rounding),
                drain.payload.seed.eq(word.imm2[: len(drain.payload.seed)]),
                drain.payload.sequence.eq(self.command.payload.sequence),
            ]
            self._order(
                m,
                g,
                accept & (member[g] | (fault("a stream swaps the groups of all tiles") & is_matmul)),
                is_matmul,
                turns,
            )
        m.d.comb += [
            is_matmul.eq(word.opcode == Opcode.MULTIPLY_MOVING),
            turns.eq(word.opcode == Opcode.TENSOR_TRANSPOSE),
            self.command.ready.eq(Cat(*ready).all()),
            accept.eq(self.command.valid & self.command.ready),
            watch.pattern.eq(operand(word, "dst")),
            watch.exit.eq(self._way_out(exit_, turns)),
            watch.enter.eq(accept & (is_matmul | turns)),
            order.i.valid.eq(accept),
            order.i.payload.is_matmul.eq(is_matmul),
            order.i.payload.turns.eq(turns),
            order.i.payload.exit.eq(exit_),
            order.i.payload.clash.eq(watch.clash & (is_matmul | turns)),
            order.i.payload.banks.eq(watch.banks),
        ]
        self._retire(m, order, watch)
        return m

    def _way_out(self, exit_: Value, turns: Value) -> Value:
        """The exit of a transpose is another than that of sums."""
        return exit_ + Mux(turns & ~fault("a transpose has the exit of sums"), self.groups, 0)

    def _order(self, m: Module, g: int, accept: Value, is_matmul: Value, turns: Value) -> None:
        """What commands of one row group wait for."""
        word = self.command.payload.word
        loads_accepted = Signal(ORDER_BITS, name=f"loads_accepted{g}")
        swaps_accepted = Signal(ORDER_BITS, name=f"swaps_accepted{g}")
        loaded = Signal(name=f"loaded{g}")  # since the last matmul
        if g == 0:
            self._swaps_of_first = swaps_accepted
        load, stream_ = self.load[g], self.stream[g]
        awaited = Mux(fault("a load waits for the swaps of group 0"), self._swaps_of_first, swaps_accepted)
        for target, count in ((load, awaited), (stream_, loads_accepted)):
            m.d.comb += [
                target.payload.pattern.eq(operand(word, "src0")),
                target.payload.scales.eq(operand(word, "src1")),
                target.payload.kind.eq(word.kind),
                target.payload.sparsity.eq(word.sparsity),
                target.payload.map.eq(Cat(word.imm0, word.imm1)),
                target.payload.sequence.eq(self.command.payload.sequence[: len(target.payload.sequence)]),
                target.payload.tile.eq(word.tile),
                target.payload.awaits.eq(count),
            ]
        m.d.comb += stream_.payload.swap.eq(loaded)
        with m.If(accept & is_matmul):
            m.d.sync += [loaded.eq(0), swaps_accepted.eq(swaps_accepted + loaded)]
        with m.If(accept & ~is_matmul):
            m.d.sync += loads_accepted.eq(loads_accepted + 1)
            with m.If(~turns | fault("a matmul swaps after a transpose")):  # a transpose leaves no weights behind
                m.d.sync += loaded.eq(~(loaded & fault("a second load in a row takes the swap back")))
        m.d.sync += [
            self.loads[g].eq(self.loads[g] + self.load_sent[g]),
            self.swaps[g].eq(self.swaps[g] + self.swapped[g]),
        ]

    def _retire(self, m: Module, order: RamFifo, watch: BankWatch) -> None:
        """Reports the oldest command once the last group of its tile has ended it."""
        oldest = order.o.payload
        depth = order.depth
        loads: list[Value] = []
        matmuls: list[Value] = []
        failed: list[Value] = []
        wrong: list[Value] = []
        turned: list[Value] = []
        retire = Signal()
        for g in range(self.groups):
            mine = retire & (oldest.exit == g)
            ended = Signal(range(depth + 2), name=f"loads_ended{g}")  # and not reported
            done = Signal(range(depth + 2), name=f"matmuls_done{g}")
            turns = Signal(range(depth + 2), name=f"transposes_done{g}")
            bad = Signal(name=f"failed{g}")  # the one after those done; later ones do not count
            tags = self._failed_load(m, g, ended, mine & ~oldest.is_matmul & ~oldest.turns)
            good = self.matmul_done[g] & ~self.matmul_failed[g] & ~bad
            m.d.sync += [
                ended.eq(ended + self.load_ended[g] - (mine & ~oldest.is_matmul & ~oldest.turns)),
                turns.eq(turns + self.turn_done[g] - (mine & oldest.turns & (turns != 0))),
                done.eq(done + good - (mine & oldest.is_matmul & (done != 0))),
                bad.eq(bad | (self.matmul_done[g] & self.matmul_failed[g])),
            ]
            loads.append(ended != 0)
            matmuls.append((done != 0) | bad)
            failed.append(bad & (done == 0))
            wrong.append(tags)
            turned.append((turns != 0) | fault("a transpose ends as a load does"))
        anyone = fault("what has ended in any group retires the oldest command")
        behind = Mux(oldest.turns, Array(turned)[oldest.exit], Array(loads)[oldest.exit])
        ready = Mux(oldest.is_matmul, Array(matmuls)[oldest.exit], behind)
        other = Cat(*matmuls, *loads, *turned).any()
        clash = oldest.clash | (oldest.is_matmul & Array(failed)[oldest.exit])
        m.d.comb += [
            retire.eq(order.o.valid & Mux(anyone, other, ready)),
            self.done.eq(retire),
            self.cause.eq(Mux(clash & ~fault("a failed matmul ends like others"), Const(Cause.BANK_CONFLICT, 8), 0)),
        ]
        with m.If(
            ~oldest.is_matmul
            & ~oldest.turns
            & Array(wrong)[oldest.exit]
            & ~fault("a load with wrong tags ends like others")
        ):
            m.d.comb += self.cause.eq(Cause.TAGS)
        m.d.comb += [
            order.o.ready.eq(retire),
            self.pending.eq(order.level != 0),
            watch.leave.eq(retire & (oldest.is_matmul | oldest.turns)),
            watch.leave_exit.eq(self._way_out(oldest.exit, oldest.turns)),
            watch.leave_banks.eq(oldest.banks),
        ]
        with m.If(fault("a load retires before the matmul in front of it")):
            m.d.comb += self.done.eq(self.load_ended.any() | self.matmul_done.any())

    def _failed_load(self, m: Module, g: int, ended: Signal, retires: Value) -> Value:
        """Whether the oldest load of a last row group, with `ended` of them not reported, has failed.

        Of those only the first that failed is kept: the queue halts there.
        """
        held = Signal(name=f"load_failed{g}")
        before = Signal.like(ended, name=f"loads_before{g}")  # that are not reported
        with m.If(~held):
            fails = self.load_ended[g] & self.load_failed[g]
            m.d.sync += [
                held.eq(fails),
                before.eq(ended - retires - (fault("the load before one with wrong tags fails") & (ended != 0))),
            ]
        with m.Elif(retires):
            m.d.sync += [held.eq(before != 0), before.eq(before - 1)]
        return held & (before == 0)
