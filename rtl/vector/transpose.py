"""TRANSPOSE: blocks of Q partitions x Q elements, turned by way of Q RAMs a block."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.isa import block

__all__ = ["Transpose"]


def _rotated(m: Module, lanes: Value, by: Value, name: str, up: bool) -> Value:
    """Lane i goes to lane i + by, or i - by: a stage for each bit of `by`."""
    for bit in range(len(by)):
        stage = Signal(len(lanes), name=f"{name}{bit}")
        places = 32 << bit
        m.d.comb += stage.eq(Mux(by[bit], lanes.rotate_left(places) if up else lanes.rotate_right(places), lanes))
        lanes = stage
    return lanes


class Transpose(wiring.Component):
    """Of a run of Q beats, beat e given out is, in partition j of each block, what came in beat j for partition e.

    Q = `size`, isa.block(P). 32 raw bits a partition. Each block has Q RAMs of 2Q words. Element e of partition i lies
    in RAM (i + e) mod Q, so that a beat in and a beat out touch each RAM once. A run that comes takes the very words
    that the run two before it leaves, beat by beat: in two runs out of four word e holds beat e, in the others what
    partition e has.
    Timing: a beat in and a beat out a cycle; 2Q beats fit, which `room` and `granted` count. The first beat of a run is
    given at the earliest two cycles after its last one came: out_valid in the cycle after one with `gives`, which
    `place` permits. `done`: the last one, of the run that ended with `last`.
    """

    def __init__(self, cfg: Config, size: int | None = None):
        self.cfg = cfg
        self.size = block(cfg.partitions) if size is None else size
        wide = 32 * cfg.partitions
        super().__init__(
            {
                "start": In(1),
                "granted": In(1),
                "room": Out(1),
                "valid": In(1),
                "last": In(1),
                "x": In(wide),
                "place": In(1),
                "gives": Out(1),
                "out_valid": Out(1),
                "out": Out(wide),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        q = self.size
        beat_in = Signal(range(q))
        beat_out = Signal(range(q))
        run_in = Signal(2)  # mod 4: which half of the RAMs, and in which order
        run_out = Signal(2)
        full = Signal(2)  # runs that are complete
        held = Signal(range(2 * q + 2))
        ended = Signal()
        filled = Signal()
        emptied = Signal()
        m.d.comb += [
            self.room.eq(held < 2 * q + fault("one element more is asked for than there is room for")),
            filled.eq(
                self.valid & (beat_in == Mux(fault("a run is given out before its last beat has come"), 0, q - 1))
            ),
            self.gives.eq(
                (full != 0) & (self.place | fault("results of a vector transpose are given without a place for them"))
            ),
            emptied.eq(self.gives & (beat_out == q - 1)),
        ]
        turn = Signal(range(q))
        m.d.sync += [
            held.eq(held + self.granted - self.gives),
            full.eq(full + filled - emptied),
            self.out_valid.eq(self.gives),
            self.done.eq(emptied & ended & (full == 1)),
            turn.eq(beat_out + fault("partitions are turned by one too many")),
        ]
        with m.If(self.valid):
            m.d.sync += [beat_in.eq(beat_in + 1), run_in.eq(run_in + (beat_in == q - 1)), ended.eq(self.last)]
        with m.If(self.gives):
            m.d.sync += [beat_out.eq(beat_out + 1), run_out.eq(run_out + (beat_out == q - 1))]
        with m.If(self.start):
            state = (beat_in, beat_out, run_in, run_out, full, held, ended)
            m.d.sync += [signal.eq(0) for signal in state]

        other_in = run_in[1] & ~fault("words are never written in the other order")
        other_out = run_out[1] & ~fault("words are never written in the other order")
        for start in range(0, self.cfg.partitions, q):
            at = slice(32 * start, 32 * (start + q))
            written = _rotated(m, self.x[at], beat_in, f"in{start}_", up=True)
            read = Signal(32 * q, name=f"read{start}")
            for bank in range(q):
                ram = Ram(32, 2 * q)
                m.submodules[f"ram_{start + bank}"] = ram
                lane_in = Signal(range(q), name=f"lane_in{start + bank}")
                lane_out = Signal(range(q), name=f"lane_out{start + bank}")
                m.d.comb += [
                    lane_in.eq(bank - beat_in),
                    lane_out.eq(bank - beat_out),
                    ram.write_en.eq(self.valid),
                    ram.write_mask.eq(1),
                    ram.write_address.eq(Mux(other_in, lane_in, beat_in) | (run_in[0] << len(beat_in))),
                    ram.write_data.eq(written[32 * bank : 32 * bank + 32]),
                    ram.read_en.eq(self.gives),
                    ram.read_address.eq(Mux(other_out, beat_out, lane_out) | (run_out[0] << len(beat_out))),
                    read[32 * bank : 32 * bank + 32].eq(ram.read_data),
                ]
            m.d.comb += self.out[at].eq(_rotated(m, read, turn, f"out{start}_", up=False))
        return m
