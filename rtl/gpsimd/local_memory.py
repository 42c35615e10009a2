"""Local memory of a GPSIMD core: a bank of 32 bits a lane, for words, lines of code, and rows from and to SBUF."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.base.ram import Ram

__all__ = ["LocalMemory"]


class LocalMemory(wiring.Component):
    """Word w is row w // lanes of bank w % lanes; `lanes` is a power of two.

    word_en: reads a word, line_en a row; a word goes first, so a row with it is not read. store_en: writes the bytes
    `store_mask` of a word, row_en the bytes `row_mask` of a row. bank_en: of these banks row bank_row[n] is read, or
    with bank_write written. Of reads and of writes there is one kind in a cycle, but for word_en with line_en.
    Timing: what is read is there in the next cycle, until the next read of its kind; it is the old one if it is written
    meanwhile.
    """

    def __init__(self, lanes: int, local_bytes: int):
        self.lanes = lanes
        self.rows = local_bytes // (4 * lanes)
        word_bits, row_bits = exact_log2(local_bytes // 4), exact_log2(self.rows)
        super().__init__(
            {
                "word_en": In(1),
                "word_address": In(word_bits),
                "word": Out(32),
                "line_en": In(1),
                "line_row": In(row_bits),
                "line": Out(32 * lanes),
                "store_en": In(1),
                "store_address": In(word_bits),
                "store_mask": In(4),
                "store_data": In(32),
                "row_en": In(1),
                "row": In(row_bits),
                "row_data": In(32 * lanes),
                "row_mask": In(4 * lanes),
                "bank_en": In(lanes),
                "bank_write": In(1),
                "bank_row": In(row_bits).array(lanes),
                "bank_data": In(32 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bank_bits = exact_log2(self.lanes)
        bank, store_bank = self.word_address[:bank_bits], self.store_address[:bank_bits]
        chosen = Signal(bank_bits)
        with m.If(self.word_en):
            m.d.sync += chosen.eq(bank)
        found: list[Signal] = []
        for n in range(self.lanes):
            m.submodules[f"bank_{n}"] = ram = Ram(32, self.rows, 8)
            mine = self.word_en & (bank == n)
            stored = self.store_en & (store_bank == n)
            looked, put = self.bank_en[n] & ~self.bank_write, self.bank_en[n] & self.bank_write
            row = Mux(self.row_en, self.row, self.store_address[bank_bits:])
            data = Mux(self.row_en, self.row_data.word_select(n, 32), self.store_data)
            m.d.comb += [
                ram.read_en.eq(mine | (self.line_en & ~self.word_en) | looked),
                ram.read_address.eq(
                    Mux(
                        looked,
                        self.bank_row[n],
                        Mux(self.word_en, self.word_address[bank_bits:], self.line_row),
                    )
                ),
                ram.write_en.eq(stored | self.row_en | put),
                ram.write_address.eq(Mux(put, self.bank_row[n], row)),
                ram.write_mask.eq(
                    Mux(self.row_en, self.row_mask.word_select(n, 4), self.store_mask)
                    | (put | fault("a store of a byte writes the whole word")).replicate(4)
                ),
                ram.write_data.eq(Mux(put, self.bank_data.word_select(n, 32), data)),
            ]
            found.append(ram.read_data)
        m.d.comb += [
            self.line.eq(Cat(*found)),
            self.word.eq(self.line.word_select(chosen ^ fault("a load reads the bank beside"), 32)),
        ]
        return m
