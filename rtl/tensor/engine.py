"""The tensor engine: connects sequencer, feeds, array and drains; computes nothing."""

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.dispatch import EngineSignature
from rtl.base.memory_port import PsumAccumulateSignature, PsumTransposeSignature, SbufReadSignature
from rtl.contract.config import Config
from rtl.contract.timing import STALLS, Engine
from rtl.tensor.array import Array
from rtl.tensor.drain import Drain
from rtl.tensor.gang import Gang
from rtl.tensor.loader import Loader
from rtl.tensor.sequencer import Sequencer
from rtl.tensor.streamer import Streamer
from rtl.tensor.transpose_drain import TransposeDrain

__all__ = ["TensorEngine"]


class TensorEngine(wiring.Component):
    """Loads, matmuls and transposes on row tiles of the array of `form`, "structural" or "native".

    Row group g reads at `sbuf_moving[g]` and `sbuf_stationary[g]`, its sums leave at `psum[g]`,
    transposes at `transposed[g]`.
    `first_beat` is 1 in each cycle in which a moving beat enters the array, `last_sum` when sums leave.
    Its clock may stand still while no command is offered and status neither holds nor drains.
    docs/tensor-engine.md has the timing.
    """

    def __init__(self, cfg: Config, form: str = "structural"):
        self.cfg = cfg
        self.form = form
        groups = cfg.tensor.groups
        super().__init__(
            {
                "queue": In(EngineSignature()),
                "sbuf_moving": Out(SbufReadSignature(cfg)).array(groups),
                "sbuf_stationary": Out(SbufReadSignature(cfg)).array(groups),
                "psum": Out(PsumAccumulateSignature(cfg)).array(groups),
                "transposed": Out(PsumTransposeSignature(cfg)).array(groups),
                "first_beat": Out(1),
                "last_sum": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.sequencer = sequencer = Sequencer(cfg)
        m.submodules.array = array = Array(cfg, self.form)
        connect(m, flipped(self.queue.command), sequencer.command)
        loaders: list[Loader] = []
        streamers: list[Streamer] = []
        drains: list[Drain | TransposeDrain] = []
        stationary: list[Value] = []
        moving: list[Value] = []
        for g in range(cfg.tensor.groups):
            m.submodules[f"loader{g}"] = loader = Loader(cfg, g)
            m.submodules[f"streamer{g}"] = streamer = Streamer(cfg, g)
            m.submodules[f"drain{g}"] = drain = Drain(cfg)
            m.submodules[f"transpose_drain{g}"] = turns = TransposeDrain(cfg)
            connect(m, sequencer.turn[g], turns.command)
            connect(m, turns.psum, flipped(self.transposed[g]))
            connect(m, sequencer.load[g], loader.command)
            connect(m, sequencer.stream[g], streamer.command)
            connect(m, sequencer.target[g], streamer.target)
            connect(m, sequencer.drain[g], drain.command)
            connect(m, loader.sbuf, flipped(self.sbuf_stationary[g]))
            connect(m, streamer.sbuf, flipped(self.sbuf_moving[g]))
            connect(m, drain.psum, flipped(self.psum[g]))
            m.d.comb += [
                drain.sums.eq(array.sums[g]),
                sequencer.load_sent[g].eq(loader.sent),
                sequencer.load_ended[g].eq(loader.ended),
                sequencer.load_failed[g].eq(loader.failed),
                loader.failed_above.eq(loaders[-1].failed if loaders else 0),
                sequencer.swapped[g].eq(streamer.swapped),
                sequencer.matmul_done[g].eq(drain.done),
                sequencer.matmul_failed[g].eq(drain.failed),
                turns.rows.eq(array.transposed[g]),
                sequencer.turn_done[g].eq(turns.done),
                loader.swaps.eq(sequencer.swaps[g]),
                loader.swapping.eq(streamer.swapped),
                streamer.loads.eq(sequencer.loads[g]),
            ]
            loaders.append(loader)
            streamers.append(streamer)
            drains += [drain, turns]
            stationary += loader.beats
            moving += streamer.beats
        m.d.comb += [a.eq(b) for a, b in zip(array.stationary, stationary, strict=True)]
        m.d.comb += [a.eq(b) for a, b in zip(array.moving, moving, strict=True)]
        for name, feeds in (("loading", loaders), ("streaming", streamers)):
            m.submodules[name] = gang = Gang(cfg)
            for g, feed in enumerate(feeds):
                m.d.comb += [
                    gang.willing[g].eq(feed.willing),
                    gang.ticket[g].eq(feed.ticket),
                    gang.tile[g].eq(feed.tile),
                    feed.go.eq(gang.go[g]),
                ]

        status = self.queue.status
        # with no stream to serve, a load is in nobody's shadow
        state: Value | int = 2 + STALLS[Engine.TENSOR].index("load")
        for streamer in reversed(streamers):
            state = Mux(streamer.holds, streamer.state, state)
        beat = Cat(streamer.beat for streamer in streamers).any()
        m.d.comb += [
            self.queue.done.eq(sequencer.done),
            self.queue.cause.eq(sequencer.cause),
            self.first_beat.eq(beat),
            self.last_sum.eq(Cat(row.valid for row in array.sums).any()),
            status.holds.eq(Cat(feed.holds for feed in (*loaders, *streamers)).any()),
            status.state.eq(Mux(beat, 0, state)),
            status.draining.eq(Cat(drain.busy for drain in drains).any() | sequencer.pending),
        ]
        return m
