"""Which registers the instructions under way have still to read and to write, so that they may overlap."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Hazards", "Pipe"]

_REGISTERS = 32


class Pipe(enum.IntEnum, shape=2):
    """Who executes instructions beside the others, one of them at a time."""

    COMPUTE = 0
    LOAD = 1
    STORE = 2
    LOOKUP = 3


class Hazards(wiring.Component):
    """All registers are sets, a bit each, and all but `begins` are indexed by Pipe.

    begins: an instruction goes to a pipe, which is done with the one before but for what is `late`; it will read
    `reads` and write `writes`. wants_read, wants_write: a pipe's next step would; may: no older instruction has still
    to write any of them, or to read what the step writes. has_read, has_written: that is through. late: to be written
    by steps of COMPUTE and LOAD that were taken, of whatever instruction. written: registers that nobody has still
    to write.
    Timing: combinational; `may` and `written` do not see this cycle's `begins`, `has_read` and `has_written`.
    """

    def __init__(self):
        pipes = len(Pipe)
        registers = In(_REGISTERS)
        # the instruction of p began before that of q; seen by proofs too
        self.older = {(p, q): Signal(name=f"{p.name}_before_{q.name}".lower()) for p in Pipe for q in Pipe if p < q}
        super().__init__(
            {
                "begins": In(pipes),
                "reads": registers,
                "writes": registers,
                "wants_read": registers.array(pipes),
                "wants_write": registers.array(pipes),
                "has_read": registers.array(pipes),
                "has_written": registers.array(pipes),
                "late": registers,
                "may": Out(pipes),
                "to_read": Out(_REGISTERS).array(pipes),
                "to_write": Out(_REGISTERS).array(pipes),
                "written": Out(_REGISTERS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pipes, older = list(Pipe), self.older
        for p in pipes:
            begins = self.begins[p]
            to_read, to_write = self.to_read[p], self.to_write[p]
            m.d.sync += [to_read.eq(to_read & ~self.has_read[p]), to_write.eq(to_write & ~self.has_written[p])]
            with m.If(begins):
                m.d.sync += [to_read.eq(self.reads), to_write.eq(self.writes)]
                m.d.sync += [first.eq(p != pair[0]) for pair, first in older.items() if p in pair]
            others_write, others_read = 0, 0
            for q in pipes:
                if q != p:
                    first = older[q, p] if q < p else ~older[p, q]
                    others_write |= Mux(first, self.to_write[q], 0)
                    others_read |= Mux(first, self.to_read[q], 0)
            not_there, not_free = Signal(_REGISTERS, name=f"not_there_{p}"), Signal(_REGISTERS, name=f"not_free_{p}")
            late = 0 if p == Pipe.COMPUTE else self.late  # it writes in the order of its steps
            early = fault("a step of vectors does not wait for what it reads")
            m.d.comb += [
                not_there.eq(Mux(early, 0, others_write | self.late)),
                not_free.eq(others_write | others_read | late),
                self.may[p].eq(~((self.wants_read[p] & not_there) | (self.wants_write[p] & not_free)).any()),
            ]
        left: Value = self.late
        for p in pipes:
            left = left | self.to_write[p]
        m.d.comb += self.written.eq(~left)
        return m
