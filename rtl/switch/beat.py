"""What travels through a switch: flits with a bit of parity for each byte."""

from amaranth.hdl import Cat, Value
from amaranth.lib import data

from rtl.contract.link_config import LinkConfig

__all__ = ["parity_of", "switch_beat", "transfer_beat"]


def switch_beat(link: LinkConfig) -> data.StructLayout:
    """A beat of a flit with `parity`, bit n for byte n: 1 if the byte has an odd number of ones."""
    return data.StructLayout({"first": 1, "last": 1, "data": 8 * link.beat_bytes, "parity": link.beat_bytes})


def transfer_beat(link: LinkConfig) -> data.StructLayout:
    """A beat in the crossbar: `head` and `tail` of its flit hold for all its beats and come from the unit's record."""
    return data.StructLayout(
        {"first": 1, "last": 1, "data": 8 * link.beat_bytes, "parity": link.beat_bytes, "head": 1, "tail": 1}
    )


def parity_of(beat_data: Value) -> Value:
    """A bit for each byte. Folded by 64 bits at a time: a byte by itself takes a simulator three times as long."""
    parities: list[Value] = []
    for n in range(0, len(beat_data), 64):
        word = beat_data[n : n + 64]
        folded: Value = word
        for distance in (4, 2, 1):
            folded = folded ^ (folded >> distance)
        parities += [folded[byte] for byte in range(0, len(word), 8)]
    return Cat(*parities)
