"""Contract words as Amaranth layouts."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from rtl.contract.access_pattern import PATTERN
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import INSTRUCTION
from rtl.contract.memmap import ADDRESS
from rtl.contract.words import Word

__all__ = ["ADDRESS_LAYOUT", "DESCRIPTOR_LAYOUT", "INSTRUCTION_LAYOUT", "PATTERN_LAYOUT", "layout"]


def layout(word: Word) -> data.StructLayout:
    """The struct of a word, padded at the top to its full width."""
    members: dict[str, object] = {f.name: signed(f.width) if f.signed else unsigned(f.width) for f in word}
    pad = word.width - sum(f.width for f in word)
    if pad:
        members["padding"] = unsigned(pad)
    return data.StructLayout(members)


ADDRESS_LAYOUT = layout(ADDRESS)
PATTERN_LAYOUT = layout(PATTERN)
INSTRUCTION_LAYOUT = layout(INSTRUCTION)
DESCRIPTOR_LAYOUT = layout(DESCRIPTOR)
