"""Which elements a permutation moves where: one crossbar of words, an element a word and pass."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.vector.active import log_elements
from rtl.gpsimd.vector.layouts import Source

__all__ = ["Permute"]


class Permute(wiring.Component):
    """A pass moves to each word of a register at most one element, place `step` of it; vcompress from each word.

    result: register `result_number` of its group; from: register `from_number` of the group vs2, whose content is
    `data`. indices: of vs1, for Source.HALVES the half `part` of twice as many. distance: of distance_of; scalar:
    what vslide1up and vslide1down put in. first: of all passes for this register of the result. ranks: for each element
    of `data`, `base` and ranks[e] give its place, if chosen[e].
    step_bytes: of a word, those of its place `step`. moved: elements where `bytes` are 1; of vcompress they are for
    register `to` of the result.
    Timing: combinational.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.bits = exact_log2(32 * lanes)  # of an element's number
        places = 4 * lanes
        super().__init__(
            {
                "source": In(Source),
                "size": In(2),
                "lmul": In(signed(3)),
                "vl": In(self.bits + 1),
                "scalar": In(32),
                "distance": In(self.bits + 1),
                "result_number": In(3),
                "from_number": In(signed(13)),
                "step": In(2),
                "part": In(1),
                "first": In(1),
                "indices": In(32 * lanes),
                "data": In(32 * lanes),
                "ranks": In(places.bit_length()).array(places),
                "chosen": In(places),
                "base": In(self.bits + 1),
                "to": In(3),
                "moved": Out(32 * lanes),
                "bytes": Out(places),
                "step_bytes": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, size, step = self.lanes, self.size, self.step
        log_bytes = exact_log2(4 * lanes)
        lane_bits = exact_log2(lanes)
        source = self.source
        compress = source == Source.COMPRESS
        up = (source == Source.UP) | (source == Source.UP_ONE)
        down = (source == Source.DOWN) | (source == Source.DOWN_ONE)
        shift = log_elements(lanes, size)
        most = Signal(self.bits + 1)  # VLMAX
        distance = self.distance
        m.d.comb += [
            most.eq(1 << (log_bytes + self.lmul - size)[:4]),
        ]
        begin, away = Signal(self.bits + 1), Signal(signed(self.bits + 3))  # its first element, and where that is from
        m.d.comb += [
            begin.eq(self.result_number << shift),
            away.eq(Mux(up, begin - distance, begin + distance)),
        ]

        step_byte, step_bytes = Signal(2), self.step_bytes
        m.d.comb += [step_byte.eq(step << size), step_bytes.eq(_enable(size, step_byte))]
        words: list[Value] = [self.data[32 * n : 32 * n + 32] for n in range(lanes)]
        lane_from = [Signal(lane_bits, name=f"lane_from_{n}") for n in range(lanes)]
        byte_from = [Signal(2, name=f"byte_from_{n}") for n in range(lanes)]
        takes = Signal(lanes)
        puts, zeros = Signal(lanes), Signal(lanes)  # the scalar, or 0
        for n in range(lanes):
            index, wide = Signal(signed(self.bits + 3), name=f"index_{n}"), Signal(32, name=f"wide_{n}")
            place = Signal(self.bits, name=f"place_{n}")  # in its register
            m.d.comb += [
                place.eq(
                    Mux(size == 2, n, Mux(size == 1, Cat(step[0], Const(n, lane_bits)), Cat(step, Const(n, lane_bits))))
                ),
                wide.eq(self._index(n)),
            ]
            by_index = (source == Source.VECTOR) | (source == Source.HALVES)
            with m.If(by_index):
                m.d.comb += index.eq(Mux(wide[self.bits :].any(), 1 << self.bits, wide))
            with m.Elif(source == Source.SAME):
                m.d.comb += index.eq(distance)
            with m.Else():
                m.d.comb += index.eq(away + place)
            beyond = Signal(name=f"beyond_{n}")
            here = (index >> shift) == self.from_number
            mine = Mux((source == Source.HALVES) & (size == 0), (n >= lanes // 2) == self.part, 1)
            element = Signal(self.bits + 1, name=f"element_{n}")
            last = element + 1 == self.vl
            m.d.comb += [
                element.eq(begin + place),
                beyond.eq(~index[-1] & (index >= most)),
                takes[n].eq(here & ~index[-1] & ~beyond & mine & ~((source == Source.DOWN_ONE) & last)),
                puts[n].eq(
                    self.first & (((source == Source.UP_ONE) & index[-1]) | ((source == Source.DOWN_ONE) & last))
                ),
                zeros[n].eq(self.first & beyond & (by_index | down | (source == Source.SAME)) & mine & ~puts[n]),
                lane_from[n].eq((index << size)[2 : 2 + lane_bits]),
                byte_from[n].eq((index << size)[:2]),
            ]

        # vcompress: where each word's element goes
        lane_to = [Signal(lane_bits, name=f"lane_to_{n}") for n in range(lanes)]
        gives = Signal(lanes)
        packed: list[Value] = []
        enables: list[Value] = []
        for n in range(lanes):
            at = Signal(self.bits + 1, name=f"at_{n}")
            rank, is_chosen = Signal(len(self.ranks[0]), name=f"rank_{n}"), Signal(name=f"is_chosen_{n}")
            with m.Switch(size):
                for s in range(3):
                    with m.Case(s):
                        for k in range(4 >> s):
                            e = (n << 2 - s) + k
                            with m.If(step == k):
                                m.d.comb += [rank.eq(self.ranks[e]), is_chosen.eq(self.chosen[e])]
            m.d.comb += [
                at.eq(self.base + rank),
                gives[n].eq(is_chosen & ((at >> shift)[:3] == self.to)),
                lane_to[n].eq((at << size)[2 : 2 + lane_bits]),
            ]
            enable, sent = Signal(4, name=f"enable_{n}"), Signal(32, name=f"sent_{n}")
            placed = _element(words[n], size, step_byte) & Cat(bit.replicate(8) for bit in enable)
            m.d.comb += [enable.eq(_enable(size, (at << size)[:2])), sent.eq(Mux(compress, placed, words[n]))]
            packed.append(sent)
            enables.append(enable)

        out: list[Value] = []
        written: list[Value] = []
        scalar = _element(self.scalar, size, Const(0, 2))
        wrong = fault("a permutation finds the word beside")
        for n in range(lanes):
            word, some = Signal(32, name=f"word_{n}"), Signal(4, name=f"some_{n}")
            hits = Signal(lanes, name=f"hits_{n}")
            from_lane = Signal(lane_bits, name=f"from_lane_{n}")
            m.d.comb += [
                from_lane.eq(lane_from[n] ^ wrong),
                hits.eq(Cat(Mux(compress, gives[k] & (lane_to[k] == n), from_lane == k) for k in range(lanes))),
                word.eq(_any_of(hits, packed)),
            ]
            with m.If(compress):
                m.d.comb += some.eq(_any_of(hits, enables))
            with m.Elif(takes[n] | puts[n] | zeros[n]):
                m.d.comb += some.eq(step_bytes)
            gathered = _element(word, size, byte_from[n])
            out.append(Mux(compress, word, Mux(puts[n], scalar, Mux(takes[n], gathered, 0))))
            written.append(some)
        m.d.comb += [self.moved.eq(Cat(*out)), self.bytes.eq(Cat(*written))]
        return m

    def _index(self, n: int) -> Value:
        """What the indices say for place `step` of word n."""
        lanes, size, step = self.lanes, self.size, self.step
        words = [self.indices[32 * k : 32 * k + 32] for k in range(lanes)]
        own = words[n]
        byte, half = own.word_select(step, 8), own.word_select(step[0], 16)
        plain = Mux(size == 2, own, Mux(size == 1, half, byte))
        # halves as indices: of a word each, beside it or in the register's half; of four bytes each two words
        of_word = Mux(self.part, words[(lanes + n) // 2], words[n // 2]).word_select(n & 1, 16)
        low, high = 2 * n % lanes, 2 * n % lanes + 1  # element 4n + step
        of_byte = Mux(step[1], words[high], words[low]).word_select(step[0], 16)
        of_words = Mux(size == 2, of_word, Mux(size == 1, half, of_byte))
        return Mux(self.source == Source.HALVES, of_words, plain)


def _any_of(hits: Value, values: list[Value]) -> Value:
    """Those whose hit is 1, over each other."""
    found: Value = hits[0].replicate(len(values[0])) & values[0]
    for hit, value in zip(list(hits)[1:], values[1:], strict=True):
        found = found | (hit.replicate(len(value)) & value)
    return found


def _element(word: Value, size: Value, byte: Value) -> Value:
    """The element of a word that begins at `byte`, in all places of a word."""
    whole = word[:32]
    half = Mux(byte[1], whole[16:], whole[:16])
    quarter = Mux(byte[0], half[8:], half[:8])
    return Mux(size == 2, whole, Mux(size == 1, half.replicate(2), quarter.replicate(4)))


def _enable(size: Value, byte: Value) -> Value:
    """The bytes of the element that begins at `byte`."""
    halves = Cat((~byte[1]).replicate(2), byte[1].replicate(2))
    return Mux(size == 2, 0b1111, Mux(size == 1, halves, (1 << byte[:2])[:4]))
