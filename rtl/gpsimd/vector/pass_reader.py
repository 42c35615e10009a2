"""The first cycle of a pass: an instruction waits for its registers, pass by pass, and reads them."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.gpsimd.vector.configuration import setting
from rtl.gpsimd.vector.layouts import VECTOR
from rtl.gpsimd.vector.passes import PASS, Passes, distance_of

__all__ = ["PassReader", "begun"]


def begun(lanes: int) -> dict[str, int | object]:
    """Shapes of what is known of an instruction as it begins: of Intake, but for `i` and `now`."""
    bits = 32 * lanes
    return {
        "i": VECTOR,
        "now": setting(lanes),
        "size": 2,
        "elements": exact_log2(bits) + 1,
        "active": bits,
        "carries": bits,
        "scalar": 32,
        "streams": 1,
        "plain": 1,
    }


class PassReader(wiring.Component):
    """`start` with `ready`: an instruction begins, of which `held_...` stays until the next one.

    goes: a pass may follow; behind: passes that were taken are not through. may: the registers that the next pass needs
    are there and free (Hazards), wants_read and wants_write. taken: pass `o` is taken and registers `first`, `second`
    and `third` are read; `fresh`: it is the instruction's first; writes: what it writes. has_read, has_written:
    registers that no later pass reads or will write. busy: there are passes. to_read, to_write: of Hazards.
    Timing: the first pass in the cycle after `start`.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        shapes = begun(lanes)
        registers = Out(32)
        super().__init__(
            {
                "start": In(1),
                "ready": Out(1),
                **{name: In(shape) for name, shape in shapes.items()},
                **{f"held_{name}": Out(shape) for name, shape in shapes.items()},
                "goes": In(1),
                "behind": In(1),
                "may": In(1),
                "to_read": In(32),
                "to_write": In(32),
                "wants_read": registers,
                "wants_write": registers,
                "has_read": registers,
                "has_written": registers,
                "writes": registers,
                "busy": Out(1),
                "taken": Out(1),
                "fresh": Out(1),
                "o": Out(PASS),
                "first": Out(5),
                "second": Out(5),
                "third": Out(5),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.passes = passes = Passes(self.lanes)
        plain, streams, last = self.held_plain, self.held_streams, Signal()
        m.d.comb += [
            self.taken.eq(self.busy & self.goes & self.may),
            last.eq(self.taken & passes.now.ends),
            # what follows an instruction that streams does not wait until its last pass is through
            self.ready.eq(Mux(self.busy, last & streams, streams | ~self.behind)),
        ]
        with m.If(last):
            m.d.sync += self.busy.eq(0)
        with m.If(self.taken):
            m.d.sync += self.fresh.eq(0)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self.fresh.eq(1)]
            m.d.sync += [getattr(self, f"held_{name}").eq(getattr(self, name)) for name in begun(self.lanes)]
        read_now, written_now = Signal(32), Signal(32)
        m.d.comb += [
            passes.go.eq(self.taken),
            passes.i.eq(self.held_i),
            passes.setting.eq(self.held_now),
            passes.elements.eq(self.held_elements),
            passes.size.eq(self.held_size),
            passes.distance.eq(distance_of(self.held_i.source, self.held_scalar, exact_log2(32 * self.lanes))),
            self.o.eq(passes.now),
            self.first.eq(passes.first),
            self.second.eq(passes.second),
            self.third.eq(passes.third),
            read_now.eq((1 << self.first) | (1 << self.second) | (1 << self.third)),
            written_now.eq(1 << self.third),
            self.writes.eq(Mux(plain, self.to_write & written_now, self.to_write)),
            # unless it is plain its first pass waits for all that the instruction needs
            self.wants_read.eq(Mux(plain, self.to_read & read_now, Mux(self.fresh, self.to_read, 0))),
            self.wants_write.eq(Mux(plain | self.fresh, self.writes, 0)),
            self.has_read.eq(Mux(self.taken, Mux(last, self.to_read, Mux(plain, read_now, 0)), 0)),
            self.has_written.eq(Mux(self.taken, Mux(last, self.to_write, Mux(plain, written_now, 0)), 0)),
        ]
        return m
