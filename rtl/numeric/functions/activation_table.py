"""The loadable table of activation functions, as one lane sees it."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.ram import Ram
from rtl.contract.activation_tables import ENTRIES, MODE_BITS, ROW_BITS, ROW_WORDS, SCALE_BITS

__all__ = ["ENTRY", "FUNCTION_BITS", "LOAD", "ActivationTable"]

FUNCTION_BITS = 4  # functions that need a table
_ENTRY_BITS = FUNCTION_BITS + ceil_log2(ENTRIES)

ENTRY = data.StructLayout({"row": ROW_BITS, "bits": 4, "scale": SCALE_BITS, "mode": MODE_BITS})
"""A word of the directory: rtl.contract.activation_tables.Entry."""

LOAD = data.StructLayout({"address": 21, "word": 32})
"""A word of a table and its place: rtl.contract.activation_tables.load_words."""


class ActivationTable(wiring.Component):
    """Directory and rows. `load` writes `load_word` in cycles with `load_valid`.

    Timing: `entry` and `row` show what their addresses of the cycle before named. Reset: the contents stay.
    """

    def __init__(self, rows: int):
        self.rows = rows
        super().__init__(
            {
                "load_valid": In(1),
                "load": In(LOAD),
                "entry_address": In(_ENTRY_BITS),
                "entry": Out(ENTRY),
                "row_address": In(ROW_BITS),
                "row": Out(32 * ROW_WORDS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.directory = directory = Ram(32, 1 << _ENTRY_BITS)
        m.submodules.rows = rows = Ram(32 * ROW_WORDS, self.rows, granule=32)
        address = self.load.address
        to_directory = address[-1]
        m.d.comb += [
            directory.read_en.eq(1),
            directory.read_address.eq(self.entry_address),
            self.entry.eq(directory.read_data),
            directory.write_en.eq(self.load_valid & to_directory),
            directory.write_address.eq(address),
            directory.write_mask.eq(1),
            directory.write_data.eq(self.load.word),
            rows.read_en.eq(1),
            rows.read_address.eq(self.row_address),
            self.row.eq(rows.read_data),
            rows.write_en.eq(self.load_valid & ~to_directory),
            rows.write_address.eq(address[2:]),
            rows.write_mask.eq(1 << address[:2]),
            rows.write_data.eq(Cat(*([self.load.word] * ROW_WORDS))),
        ]
        return m
