"""Loads and stores of all GPSIMD cores to SBUF and to the memory that they share, and what they print: one a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, PureInterface, connect, flipped
from amaranth.utils import exact_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS, SbufReadSignature, SbufWriteSignature, sbuf_word_bits
from rtl.contract.config import Config
from rtl.contract.gpsimd import cores, lanes
from rtl.gpsimd.lane_bus import LaneBus, LaneSignature
from rtl.gpsimd.layouts import DEVICE, Place
from rtl.gpsimd.shared_memory import SharedMemory, SharedRowsSignature
from rtl.gpsimd.shared_port import share_port

__all__ = ["Bus"]

_ROW_BITS = 18  # of an address in SBUF_ROWS: a byte of a partition


class Bus(wiring.Component):
    """`request` of core k is for what `held[k]` says; cores take turns.

    served: the request is through, a store has committed. answered, one cycle later, ends a load: `answer`. bytes: how
    many of SBUF the core that is served moves. printed: core `printer` prints `byte`. lanes: LaneBus', shared: rows of
    SharedMemory, both of cores with vectors.
    Timing: a request that is alone is served at once, but for SBUF when it grants; there and in shared memory rows and
    `request` take turns if both ask.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.cores = cores(cfg.partitions)
        rows = {name: In(of(cfg)) for name, of in (("lanes", LaneSignature), ("shared", SharedRowsSignature))}
        rows = {name: member.array(self.cores) for name, member in rows.items()}
        super().__init__(
            {
                "request": In(self.cores),
                "held": In(DEVICE).array(self.cores),
                "served": Out(self.cores),
                "answered": Out(self.cores),
                "answer": Out(32),
                "bytes": Out(3),
                "sbuf_read": Out(SbufReadSignature(cfg)),
                "sbuf_write": Out(SbufWriteSignature(cfg)),
                "printed": Out(1),
                "printer": Out(3),
                "byte": Out(8),
                **(rows if cfg.gpsimd.vectors else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        lane_bits = exact_log2(lanes(cfg.partitions))
        m.submodules.turn = turn = RoundRobin(self.cores)
        m.submodules.shared = shared = SharedMemory(cfg)
        chosen, core, moves = Signal(DEVICE), Signal(range(self.cores)), Signal()
        m.d.comb += turn.requests.eq(self.request)
        for k in range(self.cores):
            with m.If(turn.grant[k]):
                m.d.comb += [chosen.eq(self.held[k]), core.eq(k)]
        access = chosen.access
        in_rows, in_sbuf = chosen.place == Place.ROWS, Signal()
        byte, lane = Signal(_ROW_BITS), Signal(lane_bits)
        partition = Cat(lane, core)
        m.d.comb += [
            in_sbuf.eq(in_rows | (chosen.place == Place.LANES)),
            lane.eq(Mux(in_rows, access.address[_ROW_BITS:], access.address[2:])),
            byte.eq(Mux(in_rows, access.address, Cat(access.address[:2], access.address[2 + lane_bits : 28]))),
        ]

        asked = self.request.any()
        mask = Cat(access.mask & ~byte[2].replicate(4), access.mask & byte[2].replicate(4))
        quadrant = partition[-2:]
        read, write = SbufReadSignature(cfg).create(), SbufWriteSignature(cfg).create()  # of a word
        m.d.comb += [
            read.valid.eq(asked & in_sbuf & ~access.write),
            write.valid.eq(asked & in_sbuf & access.write),
            write.bytes.eq(mask),
            write.partitions.eq(1 << (partition ^ fault("a core writes the partition beside"))),
            write.data.eq(access.data.replicate(2 * cfg.partitions)),
        ]
        for port in (read, write):
            m.d.comb += port.quadrants.eq(1 << quadrant)
            m.d.comb += [port.word[q].eq(byte[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        if cfg.gpsimd.vectors:
            self._share(m, read, write)
            for outer, inner in zip(self.shared, shared.rows, strict=True):
                connect(m, flipped(outer), inner)
        else:
            connect(m, read, flipped(self.sbuf_read))
            connect(m, write, flipped(self.sbuf_write))
        is_shared = chosen.place == Place.SHARED
        with m.If(in_sbuf):
            m.d.comb += moves.eq(asked & Mux(access.write, write.ready, read.ready))
        with m.Else():
            m.d.comb += moves.eq(asked & (shared.word_ready | ~is_shared))
        m.d.comb += [
            turn.accept.eq(moves),
            self.served.eq(Mux(moves, turn.grant, 0)),
            self.bytes.eq(Mux(in_sbuf & moves, sum(access.mask[n] for n in range(4)), 0)),
            shared.word_en.eq(asked & is_shared),
            shared.access.eq(access),
            self.printed.eq(moves & (chosen.place == Place.REGISTER)),
            self.printer.eq(core),
            self.byte.eq(access.data),
        ]
        was_shared, was_word = Signal(), Signal(exact_log2(cfg.partitions) + 1)
        m.d.sync += [
            self.answered.eq(Mux(moves & ~access.write, turn.grant, 0)),
            was_shared.eq(is_shared),
            was_word.eq(Cat(byte[2], partition)),
        ]
        m.d.comb += self.answer.eq(Mux(was_shared, shared.word, self.sbuf_read.data.word_select(was_word, 32)))
        return m

    def _share(self, m: Module, read: PureInterface, write: PureInterface) -> None:
        """Words of one core and lanes of many take turns."""
        m.submodules.lane_bus = lane_bus = LaneBus(self.cfg)
        for outer, inner in zip(self.lanes, lane_bus.lanes, strict=True):
            connect(m, flipped(outer), inner)
        for name, words, port, many in (
            ("read", read, self.sbuf_read, lane_bus.sbuf_read),
            ("write", write, self.sbuf_write, lane_bus.sbuf_write),
        ):
            word_next = Signal(name=f"{name}_word_next")
            of_word = Signal(name=f"{name}_of_word")
            m.d.comb += of_word.eq(words.valid & (~many.valid | word_next))
            with m.If(port.valid & port.ready):
                m.d.sync += word_next.eq(~of_word)
            share_port(m, port, words, many, of_word)
