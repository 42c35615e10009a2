"""Mover of a group of partitions: queues of the classes, a lane for those that share, one for the class that goes
first."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.limits import limit_ports
from rtl.base.memory_port import SbufMoverSignature
from rtl.contract.config import Config
from rtl.dma.layouts import CLASSES, ar_burst, done_layout, fetch_layout, lanes, row_layout
from rtl.dma.movers.class_queues import ClassQueues
from rtl.dma.movers.lane import LANE_COUNTS, Lane
from rtl.dma.sbuf_share import SbufShare

__all__ = ["Mover", "ROWS_AHEAD"]

ROWS_AHEAD = 16
"""Rows of a class that wait for their bursts: a group of 8 partitions fits twice."""


class Mover(wiring.Component):
    """What is an array, and each bit of a number of as many, is of a Lane: that of the classes that share, and behind
    it, if there is one (layouts.fast_class), that of the class that goes first, so that none of its rows stands behind
    another's bytes: neither in a buffer nor before a burst that HBM has not answered.

    `index`: which mover this is. `limit_*`: see Reader and Writer. `row`, of `class_`, and `room`: see ClassQueues.
    `sbuf`: the port of its partitions; the class that goes first has it before the others.
    `ask`, `answer_*`: 16-byte units of other movers' partitions; `serve_*`: the same for the others, before
    the reads of the lane that is shared (the data are on the port in the cycle after `serve_ready`).
    `read`, `beat_*`: bursts from HBM and their beats, never refused; `write`, `w_*`, `b_*`: bursts to HBM.
    `done`: rows whose last write has committed: SBUF took it, or told that the last sum is there, or HBM answered. SBUF
    tells that of rows in their order; ADDED_ROWS may wait for it.
    For the counters: `moves` a step was made, `sbuf_refused`, `reading` beats are awaited, `writing` beats
    wait to be sent, `committing` answers are awaited.
    Timing: 16 bytes every cycle over any sequence of rows whose data are there, in all.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        port = cfg.hbm.port_bytes
        n = lanes(cfg)
        burst = stream.Signature(ar_burst(cfg))
        super().__init__(
            {
                **limit_ports(cfg, "buffer_bytes", "burst_bytes"),
                "index": In(4),
                "row": In(stream.Signature(row_layout(cfg))),
                "class_": In(range(CLASSES)),
                "room": Out(CLASSES),
                "sbuf": Out(SbufMoverSignature(cfg)),
                "ask": Out(stream.Signature(fetch_layout(cfg))).array(n),
                "answer_valid": In(n),
                "answer": In(128),
                "serve_valid": In(1),
                "serve_ready": Out(1),
                "serve": In(fetch_layout(cfg)),
                "read": Out(burst).array(n),
                "beat_valid": In(n),
                "beat_data": In(8 * port),
                "beat_error": In(1),
                "write": Out(burst).array(n),
                "w_valid": Out(n),
                "w_data": Out(8 * port).array(n),
                "w_strobe": Out(port).array(n),
                "w_take": In(n),
                "b_valid": In(n),
                "b_error": In(1),
                "b_ready": Out(n),
                "done": Out(stream.Signature(done_layout(cfg))),
                **LANE_COUNTS,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.ahead = ahead = ClassQueues(cfg, ROWS_AHEAD)
        connect(m, flipped(self.row), ahead.i)
        m.d.comb += [ahead.class_.eq(self.class_), self.room.eq(ahead.room)]
        all_lanes: list[Lane] = []
        for k, rows in enumerate((ahead.o, ahead.fast) if lanes(cfg) > 1 else (ahead.o,)):
            lane = Lane(cfg)
            m.submodules[f"lane{k}"] = lane
            all_lanes.append(lane)
            connect(m, rows, lane.row)
            connect(m, lane.ask, flipped(self.ask[k]))
            connect(m, lane.read, flipped(self.read[k]))
            connect(m, lane.write, flipped(self.write[k]))
            m.d.comb += [
                lane.index.eq(self.index),
                lane.limit_buffer_bytes.eq(self.limit_buffer_bytes),
                lane.limit_burst_bytes.eq(self.limit_burst_bytes),
                lane.answer_valid.eq(self.answer_valid[k]),
                lane.answer.eq(self.answer),
                lane.beat_valid.eq(self.beat_valid[k]),
                lane.beat_data.eq(self.beat_data),
                lane.beat_error.eq(self.beat_error),
                self.w_valid[k].eq(lane.w_valid),
                self.w_data[k].eq(lane.w_data),
                self.w_strobe[k].eq(lane.w_strobe),
                lane.w_take.eq(self.w_take[k]),
                lane.b_valid.eq(self.b_valid[k]),
                lane.b_error.eq(self.b_error),
                self.b_ready[k].eq(lane.b_ready),
            ]
        first = all_lanes[0]
        m.d.comb += [
            first.serve_valid.eq(self.serve_valid),
            first.serve.eq(self.serve),
            self.serve_ready.eq(first.serve_ready),
            *(getattr(self, name).eq(Cat(getattr(lane, name) for lane in all_lanes).any()) for name in LANE_COUNTS),
        ]
        if len(all_lanes) == 1:
            connect(m, first.sbuf, flipped(self.sbuf))
            connect(m, first.done, flipped(self.done))
            return m
        fast = all_lanes[1]
        m.submodules.share = share = SbufShare(cfg, always=True)
        connect(m, fast.sbuf, share.link)
        connect(m, first.sbuf, share.mover)
        connect(m, share.sbuf, flipped(self.sbuf))
        m.d.comb += [
            self.done.valid.eq(fast.done.valid | first.done.valid),
            self.done.payload.eq(first.done.payload),
            fast.done.ready.eq(self.done.ready),
            first.done.ready.eq(
                self.done.ready
                & (~fast.done.valid | fault("a row that ends beside one of the class that goes first is lost"))
            ),
        ]
        with m.If(fast.done.valid):
            m.d.comb += self.done.payload.eq(fast.done.payload)
        return m
