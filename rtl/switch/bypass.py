"""Units that meet nobody begin in any cycle, without the scheduler."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.switch_config import SwitchConfig

__all__ = ["Bypass"]


class Bypass(wiring.Component):
    """An input that holds one unit alone, to an output that is idle and that no other input holds a unit for.

    `lone`: one unit waits at the input, and none is under way. `lists`: bit output * queues + queue, a unit waits;
    `ready`: it may begin. `sends`, `takes`: inputs and outputs that the scheduler uses in this slot; `ends`: the last
    beat of an input's unit is read in this cycle. `slot`: the first cycle of a slot.
    `starts` an input's unit (`queue`, to `out_port`), and `tunes` the output to it (`source`, `tuned_queue`). It
    `mutes` an output a cycle after the last beat of its unit was read, when it shows; its input may begin another one.
    `blocked_inputs`, `blocked_outputs`: in the last cycle of a slot, those that the scheduler's match for the next one
    must leave alone: the unit goes on, or it began after the scheduler had looked, at the end of the first cycle.
    Timing: combinational from registers and from what comes from registers.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        n, queues = cfg.outputs, cfg.link.queues
        super().__init__(
            {
                "slot": In(1),
                "lone": In(cfg.inputs),
                "lists": In(n * queues).array(cfg.inputs),
                "ready": In(n * queues),
                "sends": In(cfg.inputs),
                "takes": In(n),
                "ends": In(cfg.inputs),
                "starts": Out(cfg.inputs),
                "tunes": Out(n),
                "mutes": Out(n),
                "source": Out(data.ArrayLayout(range(cfg.inputs), n)),
                "out_port": Out(data.ArrayLayout(range(n), cfg.inputs)),
                "queue": Out(data.ArrayLayout(range(queues), cfg.inputs)),
                "tuned_queue": Out(data.ArrayLayout(range(queues), n)),
                "busy_inputs": Out(cfg.inputs),
                "busy_outputs": Out(n),
                "blocked_inputs": Out(cfg.inputs),
                "blocked_outputs": Out(n),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n, queues = cfg.outputs, cfg.link.queues
        held = [Signal(n, name=f"held_{k}") for k in range(cfg.inputs)]  # outputs that an input has units for
        wants = [Signal(n, name=f"wants_{k}") for k in range(cfg.inputs)]
        goes_on = Signal(n)
        idle = Signal(n)
        m.d.comb += idle.eq(~self.takes & ~self.busy_outputs)

        # At most one input a column: none has a unit for it but the one.
        one, two = Const(0, n), Const(0, n)
        for k in range(cfg.inputs):
            may = Signal(n * queues, name=f"may_{k}")
            m.d.comb += held[k].eq(Cat(self.lists[k][o * queues : (o + 1) * queues].any() for o in range(n)))
            with m.If(self.lone[k] & ~self.sends[k] & ~self.busy_inputs[k] & int(cfg.bypass)):
                m.d.comb += [
                    may.eq(
                        self.lists[k]
                        & (self.ready | fault("the bypass lets a unit begin without credits").replicate(n * queues))
                    ),
                    wants[k].eq(Cat(may[o * queues : (o + 1) * queues].any() for o in range(n)) & idle),
                ]
            before, after, more = Signal(n, name=f"one_{k}"), Signal(n, name=f"many_{k}"), one
            m.d.comb += [before.eq(one | held[k]), after.eq(two | (more & held[k]))]
            one, two = before, after
        alone = Signal(n)
        m.d.comb += alone.eq(~two | (fault("an output that another input holds a unit for is taken") * ((1 << n) - 1)))

        column = [Signal(range(n), name=f"column_{k}") for k in range(cfg.inputs)]  # of units on their way
        for k in range(cfg.inputs):
            chosen = Signal(n, name=f"chosen_{k}")
            own = Signal(queues, name=f"own_{k}")
            m.d.comb += [chosen.eq(wants[k] & alone), self.starts[k].eq(chosen.any())]
            with m.If(self.starts[k]):
                for o in range(n):
                    with m.If(chosen[o]):
                        m.d.comb += self.out_port[k].eq(o)
                        m.d.comb += own.eq(self.lists[k][o * queues : (o + 1) * queues])
                        m.d.comb += [self.source[o].eq(k), self.tuned_queue[o].eq(self.queue[k])]
                m.d.sync += column[k].eq(self.out_port[k])
            for q in range(queues):
                with m.If(own[q]):
                    m.d.comb += self.queue[k].eq(q)
        tunes: Signal | Const = Const(0, n)
        for k in range(cfg.inputs):
            sum_ = Signal(n, name=f"tunes_{k}")
            m.d.comb += sum_.eq(tunes | (wants[k] & alone))
            tunes = sum_
        m.d.comb += self.tunes.eq(tunes)

        stays, done = Signal(cfg.inputs), self._done(m, column)
        m.d.sync += [
            self.busy_inputs.eq(stays),
            self.busy_outputs.eq(goes_on),
            self.mutes.eq(Mux(fault("an output listens on when its unit has ended"), 0, done)),
        ]
        # Begun when the scheduler had looked. At x8 and x16 such a unit goes on anyway, below its time is shorter.
        late_inputs, late_outputs = Signal(cfg.inputs), Signal(n)
        begun_inputs, begun_outputs = Signal(cfg.inputs), Signal(n)
        m.d.comb += [
            stays.eq((self.busy_inputs | self.starts) & ~self.ends),
            goes_on.eq((self.busy_outputs | self.tunes) & ~done),
            late_inputs.eq(Mux(self.slot, 0, begun_inputs | self.starts)),
            late_outputs.eq(Mux(self.slot, 0, begun_outputs | self.tunes)),
            self.blocked_inputs.eq(stays | late_inputs),
            self.blocked_outputs.eq(goes_on | late_outputs),
        ]
        m.d.sync += [begun_inputs.eq(late_inputs), begun_outputs.eq(late_outputs)]
        with m.If(fault("a unit that goes on in the next slot does not block the bypass")):
            m.d.comb += [self.blocked_inputs.eq(0), self.blocked_outputs.eq(0)]
        return m

    def _done(self, m: Module, column: list[Signal]) -> Signal:
        """Outputs whose unit's last beat is read in this cycle."""
        done = Signal(self.cfg.outputs)
        bits = Array(1 << o for o in range(self.cfg.outputs))
        parts = []
        for k, to in enumerate(column):
            part = Signal(self.cfg.outputs, name=f"done_{k}")
            with m.If(self.busy_inputs[k] & self.ends[k]):
                m.d.comb += part.eq(bits[to])
            parts.append(part)
        total = parts[0]
        for part in parts[1:]:
            total = total | part
        m.d.comb += done.eq(total)
        return done
