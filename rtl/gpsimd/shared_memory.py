"""The memory that all GPSIMD cores share: words, and of cores with vectors rows as wide as their registers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.fault import fault
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.gpsimd import SHARED_BYTES, cores, lanes
from rtl.gpsimd.layouts import ACCESS

__all__ = ["SharedMemory", "SharedRowsSignature", "shared_rows_ports"]


def shared_rows_ports(cfg: Config) -> dict[str, wiring.Member]:
    """Of a core: row `line_row` is read in a cycle with line_en and line_ready, and is `line` in the next; bytes
    `row_mask` of row `row` become those of `row_data` in a cycle with row_en and row_ready."""
    count = lanes(cfg.partitions)
    rows = exact_log2(SHARED_BYTES // (4 * count))
    return {
        "line_en": Out(1),
        "line_row": Out(rows),
        "line_ready": In(1),
        "line": In(32 * count),
        "row_en": Out(1),
        "row": Out(rows),
        "row_data": Out(32 * count),
        "row_mask": Out(4 * count),
        "row_ready": In(1),
    }


class SharedRowsSignature(wiring.Signature):
    """`shared_rows_ports`, seen from a core."""

    def __init__(self, cfg: Config):
        super().__init__(shared_rows_ports(cfg))


class SharedMemory(wiring.Component):
    """`access`, in cycles with word_en, is done if word_ready; a load's `word` is there in the next. rows: of each core
    with vectors.
    Timing: one access a cycle each way, of a word or a row; both take turns, and so do the rows of cores.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.cores = cores(cfg.partitions)
        self.lanes = lanes(cfg.partitions) if cfg.gpsimd.vectors else 1  # words of a row
        rows = {"rows": In(SharedRowsSignature(cfg)).array(self.cores)} if cfg.gpsimd.vectors else {}
        super().__init__({"word_en": In(1), "access": In(ACCESS), "word_ready": Out(1), "word": Out(32), **rows})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        address, data = self.access.address, self.access.data
        m.submodules.ram = ram = Ram(32 * self.lanes, SHARED_BYTES // (4 * self.lanes), 8)
        loads, stores = Signal(), Signal()  # of words, done in this cycle
        wants_load, wants_store = self.word_en & ~self.access.write, self.word_en & self.access.write
        row = Signal(len(ram.read_address))
        m.d.comb += [
            row.eq(address >> 2 + exact_log2(self.lanes)),
            self.word_ready.eq(Mux(self.access.write, stores, loads)),
            ram.read_address.eq(row),
            ram.write_address.eq(row),
            ram.write_data.eq(data.replicate(self.lanes)),
        ]
        if not self.cfg.gpsimd.vectors:
            m.d.comb += [
                *(loads.eq(wants_load), stores.eq(wants_store), ram.read_en.eq(loads), ram.write_en.eq(stores)),
                *(self.word.eq(ram.read_data), ram.write_mask.eq(self.access.mask)),
            ]
            return m

        lane, was_lane = Signal(exact_log2(self.lanes)), Signal(exact_log2(self.lanes))
        m.d.comb += [
            lane.eq(address >> 2),
            self.word.eq(ram.read_data.word_select(was_lane, 32)),
            ram.write_mask.eq(self.access.mask << (lane << 2)),
        ]
        m.d.sync += was_lane.eq(lane)
        lines, line_turn = self._turns(m, "lines", Cat(core.line_en for core in self.rows), wants_load, loads)
        rows, row_turn = self._turns(m, "rows", Cat(core.row_en for core in self.rows), wants_store, stores)
        m.d.comb += [ram.read_en.eq(loads | lines), ram.write_en.eq(stores | rows)]
        for k, core in enumerate(self.rows):
            beside = fault("a row of shared memory goes to the core beside") if k else 0
            m.d.comb += [
                core.line.eq(ram.read_data),
                core.line_ready.eq(lines & (line_turn[k] | beside)),
                core.row_ready.eq(rows & row_turn[k]),
            ]
            with m.If(lines & line_turn[k]):
                m.d.comb += ram.read_address.eq(core.line_row)
            with m.If(rows & row_turn[k]):
                m.d.comb += [
                    ram.write_address.eq(core.row),
                    ram.write_mask.eq(core.row_mask),
                    ram.write_data.eq(core.row_data),
                ]
        return m

    def _turns(self, m: Module, name: str, asks: Cat, word: Signal, of_word: Signal) -> tuple[Signal, Signal]:
        """One way: whether a row goes, and whose; `of_word` if a word does."""
        m.submodules[f"{name}_turn"] = turn = RoundRobin(self.cores)
        goes, word_next = Signal(name=f"{name}_go"), Signal(name=f"{name}_word_next")
        m.d.comb += [
            turn.requests.eq(asks),
            turn.accept.eq(goes),
            of_word.eq(word & (~asks.any() | word_next)),
            goes.eq(asks.any() & ~of_word),
        ]
        with m.If(of_word | goes):
            m.d.sync += word_next.eq(goes)
        return goes, turn.grant
