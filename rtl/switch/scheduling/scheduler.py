"""Who sends to whom: the scheduler of a switch."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.scheduling.arrears import LONG_FLITS, Arrears
from rtl.switch.scheduling.class_choice import ClassChoice
from rtl.switch.scheduling.matching import Matching
from rtl.switch.scheduling.orders import Orders
from rtl.switch.scheduling.patience import STRICT_SLOTS, VISIT_SLOTS, Patience
from rtl.switch.scheduling.permute import Permute
from rtl.switch.scheduling.precedence import Precedence
from rtl.switch.scheduling.results import Results
from rtl.switch.scheduling.wavefront import diagonals

__all__ = ["Scheduler"]


class Scheduler(wiring.Component):
    """Matches inputs and outputs once a slot (docs/switch-scheduler.md has the rules and their reasons).

    By input: lists, a bit output * queues + queue where a complete unit waits; lengths, flits that wait by output;
    more, its unit under way has flits for the next slot. ready: a bit output * queues + queue where an output takes
    a unit. All of them in the cycle with `slot`, the first of a slot of cfg.slot_cycles. blocked_inputs,
    blocked_outputs: in the last cycle of a slot, not to be used in the next one.
    Out, for the whole next slot: by input start, first (a new unit), out_port, queue; by output valid, select,
    granted (a new unit), granted_queue.
    Timing: everything is captured in the first cycle; the match is combinational from what was captured and is
    registered at the end of the slot, so that its paths have slot_cycles - 1 cycles.
    visit, strict: those of `Patience`; other than in the product only where a short run must see them.
    """

    def __init__(self, cfg: SwitchConfig, *, visit: int = VISIT_SLOTS, strict: int = STRICT_SLOTS):
        self.cfg = cfg
        n, queues = cfg.inputs, cfg.link.queues
        self.patience = Patience(n, visit=visit, strict=strict)  # seen by proofs too
        by_input = data.ArrayLayout(range(n), n)
        by_queue = data.ArrayLayout(range(queues), n)
        super().__init__(
            {
                "slot": In(1),
                "lists": In(n * queues).array(n),  # ports of their own: 72 of them are more bits than a signal may have
                "lengths": In(data.ArrayLayout(range(cfg.length_cap_flits + 1), n)).array(n),
                "more": In(n),
                "ready": In(n * queues),
                "blocked_inputs": In(n),
                "blocked_outputs": In(n),
                "start": Out(n),
                "first": Out(n),
                "out_port": Out(by_input),
                "queue": Out(by_queue),
                "valid": Out(n),
                "select": Out(by_input),
                "granted": Out(n),
                "granted_queue": Out(by_queue),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n, queues = cfg.inputs, cfg.link.queues

        # captured in the first cycle of a slot
        eligible = [Signal(n * queues, name=f"eligible_{i}") for i in range(n)]
        lengths = [Signal(len(self.lengths[i].as_value()), name=f"lengths_{i}") for i in range(n)]
        more = Signal(n)
        phase = Signal(range(cfg.slot_cycles))
        last = Signal()
        m.d.comb += last.eq(phase == cfg.slot_cycles - 1)
        m.d.sync += phase.eq(Mux(self.slot, 1, Mux(last | (phase == 0), 0, phase + 1)))  # 0 until the first slot
        with m.If(self.slot):
            m.d.sync += [more.eq(self.more), *(lengths[i].eq(self.lengths[i]) for i in range(n))]
            m.d.sync += [eligible[i].eq(self.lists[i] & self.ready) for i in range(n)]

        rows_held, rows_free, columns_held = Signal(n), Signal(n), Signal(n)
        m.d.comb += [
            rows_held.eq(self.start & (more | fault("a unit holds its input and output for ever").replicate(n))),
            rows_free.eq(~(more | rows_held)),
            columns_held.eq(self.valid & Cat(rows_held.bit_select(self.select[o], 1) for o in range(n))),
        ]

        # the class of each output, and who asks for it
        choices = self._classes(m, eligible, rows_free)
        arrears = [Arrears(cfg) for _ in range(n)]
        asks = [arrears[o].first for o in range(n)]
        any_asks = [Signal(n, name=f"any_asks_{o}") for o in range(n)]
        waiting = [Signal(n * queues, name=f"waiting_{o}") for o in range(n)]  # its lists, by input
        for o, choice in enumerate(choices):
            parts = [eligible[i][o * queues : (o + 1) * queues] for i in range(n)]
            wanted = Signal(queues, name=f"wanted_{o}")
            m.d.comb += [
                wanted.eq(Cat(choice.chosen[q // 2] for q in range(queues))),
                arrears[o].asks.eq(Cat((part & wanted).any() for part in parts)),
                any_asks[o].eq(Cat(part.any() for part in parts)),
                waiting[o].eq(Cat(*parts)),
                choice.step.eq(last),
                choice.hold.eq(columns_held[o]),
            ]

        # in a random order
        m.submodules.orders = orders = Orders(n)
        m.submodules.permute = permute = Permute(n, 2 * n)
        m.submodules.patience = patience = self.patience
        m.submodules.precedence = precedence = Precedence(cfg)
        m.submodules.matching = matching = Matching(cfg)
        m.d.comb += [permute.i[v].eq(vector) for v, vector in enumerate([*asks, *any_asks])]
        m.d.comb += [
            orders.step.eq(last),
        ]
        for d, (wants, wants_any) in enumerate(zip(diagonals(permute.o[:n]), diagonals(permute.o[n:]))):
            m.d.comb += [
                precedence.wants[d].eq(wants),
                matching.wants[d].eq(wants),
                matching.wants_any[d].eq(wants_any),
            ]
        for part in (permute, precedence, matching):
            m.d.comb += [part.exchange.eq(orders.exchange), part.turn.eq(orders.turn)]

        # who goes first; then everybody
        m.d.comb += [
            precedence.strict.eq(Cat(choice.strict for choice in choices)),
            precedence.urgent.eq(patience.urgent),
            precedence.before_strict.eq(patience.before_strict),
            precedence.rows_free.eq(rows_free),
            precedence.columns_free.eq(~columns_held),
            matching.step.eq(last),
            matching.rows.eq(precedence.rows),
            matching.columns.eq(precedence.columns),
            matching.out_port.eq(self.out_port),
            matching.select.eq(self.select),
            matching.lengths.eq(Cat(*lengths)),
        ]
        m.d.comb += [matching.asks[o].eq(asks[o]) for o in range(n)]
        began = [Signal(n, name=f"began_{o}") for o in range(n)]
        open_rows = ~self.blocked_inputs | fault("what is blocked is scheduled").replicate(n)
        for o in range(n):
            is_open = ~self.blocked_outputs[o] | fault("what is blocked is scheduled")
            m.d.comb += [
                began[o].eq(Mux(is_open, (precedence.begins[o] | matching.match[o]) & open_rows, 0)),
                patience.asks[o].eq(any_asks[o]),
                precedence.pair[o].eq(patience.pair[o]),
                patience.began[o].eq(began[o]),
                choices[o].begin.eq(began[o].any()),
                choices[o].urgent.eq(patience.urgent[o]),
            ]
        m.d.comb += patience.step.eq(last)
        self._keep(m, last, asks, rows_held, matching)
        m.submodules.results = results = Results(cfg)
        m.d.comb += [
            results.step.eq(last),
            results.rows_held.eq(rows_held),
            results.columns_held.eq(columns_held),
        ]
        for o, choice in enumerate(choices):
            m.d.comb += [
                results.began[o].eq(began[o]),
                choice.queues.eq(waiting[o].word_select(results.source[o], queues)),
                results.chosen_queue[o].eq(choice.queue),
            ]
        bits = cfg.length_cap_flits.bit_length()
        for o, part in enumerate(arrears):
            m.submodules[f"arrears_{o}"] = part
            m.d.comb += [
                part.step.eq(last),
                part.long.eq(Cat(x.word_select(o, bits) >= min(LONG_FLITS, cfg.length_cap_flits) for x in lengths)),
                part.served.eq(began[o] | Mux(columns_held[o], Const(1, n) << self.select[o], 0)),
                part.idle.eq(results.idle),
                part.free.eq(rows_free),
            ]
        for name in ("start", "first", "out_port", "queue", "valid", "select", "granted", "granted_queue"):
            m.d.comb += getattr(self, name).eq(getattr(results, name))
        return m

    def _classes(self, m: Module, eligible: list[Signal], rows_free: Signal) -> list[ClassChoice]:
        """One choice an output, told what is held for it."""
        n, queues = self.cfg.inputs, self.cfg.link.queues
        held, free = Signal(n * queues), Signal(n * queues)
        everything, of_free = eligible[0], Mux(rows_free[0], eligible[0], 0)
        for i in range(1, n):
            everything = everything | eligible[i]
            of_free = of_free | Mux(rows_free[i], eligible[i], 0)
        m.d.comb += [held.eq(everything), free.eq(of_free)]
        choices = []
        for o in range(n):
            m.submodules[f"class_{o}"] = choice = ClassChoice(self.cfg)
            for bits, port in ((held, choice.held), (free, choice.free)):
                here = bits[o * queues : (o + 1) * queues]
                m.d.comb += port.eq(Cat(here[2 * c : 2 * c + 2].any() for c in range(queues // 2)))
            choices.append(choice)
        return choices

    def _keep(self, m: Module, last: Signal, asks: list[Value], rows_held: Signal, matching: Matching) -> None:
        """Which pairs of before may stand: they ask, are free, and have not stood too often in a row."""
        n = self.cfg.inputs
        if self.cfg.matching != "merged":
            return
        stood = [Signal(range(self.cfg.keep_slots + 1), name=f"stood_{i}") for i in range(n)]
        young = Signal(n)
        may = matching.rows & young & ~rows_held
        m.d.comb += young.eq(Cat((s != self.cfg.keep_slots) | fault("a match is kept for ever") for s in stood))
        for o in range(n):
            m.d.comb += matching.owned[o].eq(
                self.valid[o] & matching.columns[o] & (asks[o] & may).bit_select(self.select[o], 1)
            )
        for i in range(n):
            m.d.comb += matching.old[i].eq(self.start[i] & matching.owned.bit_select(self.out_port[i], 1))
            with m.If(last & ~rows_held[i]):
                again = matching.kept[i] & (stood[i] != self.cfg.keep_slots)
                m.d.sync += stood[i].eq(Mux(again, stood[i] + 1, 0))
