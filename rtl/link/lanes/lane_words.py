"""Words of the lanes back to beats."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.lanes import LANE_WORD_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout, lanes_layout, physical_lanes
from rtl.link.lanes.lane_map import width_bits, widths

__all__ = ["LaneWords"]


class LaneWords(wiring.Component):
    """`en`: the words at `lanes` (scrambled) and `key` are the next of a flit; `restart`: the next flit begins.

    width, source: the map in use. border: no flit has begun.
    Timing: a beat at `o` in the cycle after its last word.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "en": In(1),
                "restart": In(1),
                "lanes": In(lanes_layout(cfg)),
                "key": In(lanes_layout(cfg)),
                "width": In(3, init=width_bits(cfg)),
                "source": In(data.ArrayLayout(unsigned(5), cfg.lanes)),
                "border": Out(1),
                "flit_done": Out(1),
                "o_valid": Out(1),
                "o": Out(beat_layout(cfg)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        size = cfg.beat_bytes
        step = Signal(range(size // LANE_WORD_BYTES))
        beat = Signal(range(cfg.beats))
        last_step = Signal()
        last_beat = Signal()
        words = [Signal(64, name=f"word{lane}") for lane in range(cfg.lanes)]
        with m.If(self.en):
            for lane, word in enumerate(words):
                with m.Switch(self.source[lane]):
                    for p in range(lane, physical_lanes(cfg)):
                        with m.Case(p):
                            m.d.comb += word.eq(self.lanes[p] ^ self.key[p])
        kept = Signal(8 * size)
        gathered = Signal(8 * size)
        with m.Switch(self.width):
            for n, lanes in enumerate(widths(cfg)):
                with m.Case(n):
                    new = Cat(words[lane].word_select(j, 8) for j in range(LANE_WORD_BYTES) for lane in range(lanes))
                    m.d.comb += [
                        last_step.eq(step == 8 * size // len(new) - 1),
                        gathered.eq(Cat(kept[len(new) :], new)),
                    ]
        m.d.comb += [
            last_beat.eq(beat == cfg.beats - 1),
            self.border.eq((step == 0) & (beat == 0)),
            self.flit_done.eq(self.en & last_step & last_beat),
        ]
        m.d.sync += self.o_valid.eq(self.en & last_step)
        with m.If(self.en):
            m.d.sync += [kept.eq(gathered), step.eq(Mux(last_step, 0, step + 1))]
            with m.If(last_step):
                m.d.sync += [
                    beat.eq(Mux(last_beat, 0, beat + 1)),
                    self.o.first.eq(beat == 0),
                    self.o.last.eq(last_beat),
                ]
        with m.If(self.restart):
            m.d.sync += [step.eq(0), beat.eq(0)]
        m.d.comb += self.o.data.eq(kept)
        return m
