"""The loadable table of activation functions, with a reader for every lane."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.lookup import Lookup
from rtl.contract.activation_tables import ENTRIES, ROW_BITS, ROW_WORDS
from rtl.contract.config import Config
from rtl.numeric.functions.activation_table import ENTRY, FUNCTION_BITS, LOAD

__all__ = ["Tables"]

_ENTRY_BITS = FUNCTION_BITS + ceil_log2(ENTRIES)


class Tables(wiring.Component):
    """Directory and rows. `load` writes in cycles with `load_valid`.

    Timing: `entry[p]` and `row[p]` show what lane p's addresses of the cycle before named, if `read_entry` or
    `read_row` was 1; else they stay. Reset: the contents stay.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        lanes = cfg.partitions
        super().__init__(
            {
                "load_valid": In(1),
                "load": In(LOAD),
                "read_entry": In(1),
                "entry_address": In(data.ArrayLayout(_ENTRY_BITS, lanes)),
                "entry": Out(data.ArrayLayout(ENTRY.size, lanes)),
                "read_row": In(1),
                "row_address": In(data.ArrayLayout(ROW_BITS, lanes)),
                "row": Out(data.ArrayLayout(32 * ROW_WORDS, lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.cfg.partitions
        m.submodules.directory = directory = Lookup(ENTRY.size, 1 << _ENTRY_BITS, lanes)
        m.submodules.rows = rows = Lookup(32 * ROW_WORDS, self.cfg.scalar.table_rows, lanes, granule=32)
        address = self.load.address
        to_directory = address[-1]
        m.d.comb += [
            directory.read_en.eq(self.read_entry),
            directory.read_address.eq(self.entry_address),
            self.entry.eq(directory.read_data),
            directory.write_en.eq(self.load_valid & to_directory),
            directory.write_address.eq(address[: len(directory.write_address)]),
            directory.write_mask.eq(1),
            directory.write_data.eq(self.load.word),
            rows.read_en.eq(self.read_row),
            self.row.eq(rows.read_data),
            rows.write_en.eq(self.load_valid & ~to_directory),
            rows.write_address.eq(address[2:][: len(rows.write_address)]),
            rows.write_mask.eq(1 << address[:2]),
            rows.write_data.eq(Cat(*([self.load.word] * ROW_WORDS))),
        ]
        m.d.comb += [rows.read_address[p].eq(self.row_address[p][: len(rows.read_address[p])]) for p in range(lanes)]
        return m
