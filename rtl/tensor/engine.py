"""The tensor engine: connects sequencer, feeds, array and drain; computes nothing."""

from amaranth.hdl import Module, Mux, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.dispatch import EngineSignature
from rtl.base.memory_port import PsumAccumulateSignature, SbufReadSignature
from rtl.base.pattern import PatternWalker
from rtl.contract.config import Config
from rtl.contract.timing import STALLS, Engine
from rtl.tensor.array import Array
from rtl.tensor.drain import Drain
from rtl.tensor.loader import Loader
from rtl.tensor.sequencer import Sequencer
from rtl.tensor.streamer import Streamer

__all__ = ["TensorEngine"]


class TensorEngine(wiring.Component):
    """LOAD_STATIONARY and MULTIPLY_MOVING on the array of `form`, "structural" or "native".

    `first_beat` is 1 in each cycle in which a moving beat enters the array, `last_sum` when sums leave.
    Its clock may stand still while no command is offered and status neither holds nor drains.
    docs/tensor-engine.md has the timing.
    """

    FAULTS = {
        **PatternWalker.FAULTS,
        **Loader.FAULTS,
        **Streamer.FAULTS,
        **Drain.FAULTS,
        **Sequencer.FAULTS,
    }

    def __init__(self, cfg: Config, form: str = "structural", plant: ValueLike = 0):
        self.cfg = cfg
        self.form = form
        self.plant = plant
        super().__init__(
            {
                "queue": In(EngineSignature()),
                "sbuf_moving": Out(SbufReadSignature(cfg)),
                "sbuf_stationary": Out(SbufReadSignature(cfg)),
                "psum": Out(PsumAccumulateSignature(cfg)),
                "first_beat": Out(1),
                "last_sum": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.sequencer = sequencer = Sequencer(cfg, plant=self.plant)
        m.submodules.loader = loader = Loader(cfg, plant=self.plant)
        m.submodules.streamer = streamer = Streamer(cfg, plant=self.plant)
        m.submodules.array = array = Array(cfg, self.form)
        m.submodules.drain = drain = Drain(cfg, plant=self.plant)
        connect(m, flipped(self.queue.command), sequencer.command)
        connect(m, sequencer.load, loader.command)
        connect(m, sequencer.stream, streamer.command)
        connect(m, sequencer.target, streamer.target)
        connect(m, sequencer.drain, drain.command)
        connect(m, loader.sbuf, flipped(self.sbuf_stationary))
        connect(m, streamer.sbuf, flipped(self.sbuf_moving))
        connect(m, drain.psum, flipped(self.psum))
        m.d.comb += [a.eq(b) for a, b in zip(array.stationary, loader.beats, strict=True)]
        m.d.comb += [a.eq(b) for a, b in zip(array.moving, streamer.beats, strict=True)]

        sums = array.sums[-1]  # beats are of the whole array
        status = self.queue.status
        m.d.comb += [
            drain.sums.eq(sums),
            sequencer.load_sent.eq(loader.sent),
            sequencer.swapped.eq(streamer.swapped),
            sequencer.matmul_done.eq(drain.done),
            loader.swaps.eq(sequencer.swaps),
            loader.swapping.eq(streamer.swapped),
            streamer.loads.eq(sequencer.loads),
            self.queue.done.eq(sequencer.done),
            self.first_beat.eq(streamer.beat),
            self.last_sum.eq(sums.valid),
            status.holds.eq(loader.holds | streamer.holds),
            # with no stream to serve, a load is in nobody's shadow
            status.state.eq(Mux(streamer.holds, streamer.state, 2 + STALLS[Engine.TENSOR].index("load"))),
            status.draining.eq(drain.busy | sequencer.pending),
        ]
        return m
