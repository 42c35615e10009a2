"""What the scheduler of a switch says, from the matching."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.switch_config import SwitchConfig

__all__ = ["Results"]


class Results(wiring.Component):
    """Numbers of inputs and outputs from their pairs, registered at the end of a slot; what is held stays.

    began: by output, one-hot the input whose unit begins; source: its number; chosen_queue: by output, the queue of
    that unit; rows_held, columns_held: with a unit under way that goes on. idle: inputs that send nothing in the next
    slot. The other outputs are those of `Scheduler`. Timing: source and idle are combinational, the others are
    registers that `step` sets.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        n, queues = cfg.inputs, cfg.link.queues
        by_input = data.ArrayLayout(range(n), n)
        by_queue = data.ArrayLayout(range(queues), n)
        super().__init__(
            {
                "step": In(1),
                "began": In(n).array(n),
                "rows_held": In(n),
                "columns_held": In(n),
                "source": Out(by_input),
                "idle": Out(n),
                "chosen_queue": In(by_queue),
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
        n, queues = self.cfg.inputs, self.cfg.link.queues
        bits = (n - 1).bit_length()
        queue_bits = (queues - 1).bit_length()
        rows, columns = Signal(n), Signal(n)  # that begin
        numbers = [Signal(n, name=f"number_{b}") for b in range(bits)]  # of outputs, vectors over the inputs
        total: Value = Const(0, n)
        for pair in self.began:
            total = total | pair
        m.d.comb += self.idle.eq(~(rows | self.rows_held))
        m.d.comb += [rows.eq(total), columns.eq(Cat(pair.any() for pair in self.began))]
        for b in range(bits):
            those: Value = Const(0, n)
            for o in range(n):
                those = those | self.began[o] if o >> b & 1 else those
            m.d.comb += numbers[b].eq(those)
        which = [Const(sum(1 << i for i in range(n) if i >> b & 1), n) for b in range(bits)]
        chosen = self.chosen_queue.as_value()
        for o in range(n):
            m.d.comb += self.source[o].eq(Cat((self.began[o] & those).any() for those in which))
            with m.If(self.step & columns[o]):
                m.d.sync += [self.select[o].eq(self.source[o]), self.granted_queue[o].eq(self.chosen_queue[o])]
        for i in range(n):
            target = Signal(range(n), name=f"target_{i}")
            m.d.comb += target.eq(Cat(vector[i] for vector in numbers))
            with m.If(self.step & rows[i]):
                m.d.sync += [self.out_port[i].eq(target), self.queue[i].eq(chosen.word_select(target, queue_bits))]
        with m.If(self.step):
            m.d.sync += [
                self.start.eq(rows | self.rows_held),
                self.first.eq(rows),
                self.valid.eq(columns | self.columns_held),
                self.granted.eq(columns),
            ]
        return m
