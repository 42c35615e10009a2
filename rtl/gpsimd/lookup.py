"""Words of local memory by addresses of the lanes: as many at once as are in different banks."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault

__all__ = ["LocalLookup"]


class LocalLookup(wiring.Component):
    """Word w of local memory is in bank w mod `lanes`, row w / lanes; addresses are those of bytes.

    allowed: the address of a lane is that of a word in `inside`, and not in the bank and row `kept_word`, with
    `has_kept_word`. en: lanes that want their word read or written; `ready`: those served now, of each
    bank the lowest that is not stalled, which keeps the order of lanes that write one word. bank_en, bank_row,
    bank_data: of banks. found: words read in the cycle before, from `line`, the words of all banks.
    Timing: combinational, but `found`.
    """

    def __init__(self, lanes: int, row_bits: int):
        self.lanes = lanes
        self.row_bits = row_bits
        super().__init__(
            {
                "en": In(lanes),
                "address": In(32 * lanes),
                "inside": In(lanes),
                "has_kept_word": In(1),
                "kept_word": In(row_bits + exact_log2(lanes)),
                "data": In(32 * lanes),
                "stalls": In(lanes),
                "allowed": Out(lanes),
                "ready": Out(lanes),
                "bank_en": Out(lanes),
                "bank_row": Out(row_bits).array(lanes),
                "bank_data": Out(32 * lanes),
                "line": In(32 * lanes),
                "found": Out(32 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, bank_bits = range(self.lanes), exact_log2(self.lanes)
        words = [self.address.word_select(n, 32)[2:] for n in lanes]
        banks = [Signal(bank_bits, name=f"bank_{n}") for n in lanes]
        rows = [Signal(self.row_bits, name=f"row_{n}") for n in lanes]
        from_bank = [Signal(bank_bits, name=f"from_bank_{n}") for n in lanes]
        for n in lanes:
            kept = self.has_kept_word & (words[n][: len(self.kept_word)] == self.kept_word)
            aligned = (self.address.word_select(n, 32)[:2] == 0) | fault("a lane's word may lie across two")
            m.d.comb += [
                banks[n].eq(words[n][:bank_bits]),
                rows[n].eq(words[n][bank_bits:]),
                self.allowed[n].eq(aligned & self.inside[n] & ~kept),
                self.found.word_select(n, 32).eq(self.line.word_select(from_bank[n], 32)),
            ]
            m.d.sync += from_bank[n].eq(banks[n])
        served: list[Value] = [0] * self.lanes
        for b in lanes:
            wants, chosen = Signal(self.lanes, name=f"wants_{b}"), Signal(self.lanes, name=f"chosen_{b}")
            lowest = wants & (~wants + 1)[: self.lanes]
            both = fault("two lanes have a bank at once")
            row, value = Signal(self.row_bits, name=f"chosen_row_{b}"), Signal(32, name=f"value_{b}")
            m.d.comb += [
                wants.eq(Cat(self.en[n] & (banks[n] == b) for n in lanes)),
                chosen.eq(Mux(both, wants, lowest) & ~self.stalls),
                self.bank_en[b].eq(chosen.any()),
                row.eq(_picked(chosen, rows)),
                value.eq(_picked(chosen, [self.data.word_select(n, 32) for n in lanes])),
                self.bank_row[b].eq(row),
                self.bank_data.word_select(b, 32).eq(value),
            ]
            served = [old | chosen[n] for n, old in enumerate(served)]
        m.d.comb += self.ready.eq(Cat(*served))
        return m


def _picked(chosen: Value, values: list[Value]) -> Value:
    """The value of the one that is chosen."""
    found: Value = chosen[0].replicate(len(values[0])) & values[0]
    for n, value in enumerate(values[1:], 1):
        found = found | (chosen[n].replicate(len(value)) & value)
    return found
