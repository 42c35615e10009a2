"""What a feed of the array is told: an operand, and what its beats must know."""

from amaranth.lib import data

from rtl.base.layouts import PATTERN_LAYOUT

__all__ = ["COMMANDS", "MAP_BITS", "ORDER_BITS", "feed_command"]

ORDER_BITS = 3
"""Counts of loads and swaps wrap here; a feed holds at most five commands, so that they stay distinct."""

COMMANDS = 4  # being walked or sent; one more waits
MAP_BITS = 128


def feed_command() -> data.StructLayout:
    """What a feed is told: the operand, and what its beats must know."""
    return data.StructLayout(
        {
            "pattern": PATTERN_LAYOUT,
            "scales": PATTERN_LAYOUT,  # or tags
            "kind": 3,
            "sparsity": 3,
            "map": MAP_BITS,  # E4M3FN codes of E2M1 numbers
            "sequence": 8,
            "tile": 2,  # of how many rows: 0 all, 1 half, 2 a quarter
            "swap": 1,  # streams: take the weights loaded before
            "awaits": ORDER_BITS,  # streams: loads sent, loads: swaps entered, before the first beat
        }
    )
