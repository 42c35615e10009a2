"""Encoder and decoder of a named link, for builds of their own."""

from amaranth.hdl import ValueLike

from rtl.contract.link_config import LINKS
from rtl.port.decoder import Decoder
from rtl.port.encoder import Encoder

__all__ = ["decoder", "encoder"]


def encoder(link: str = "x8", form: str = "structural", plant: ValueLike = 0) -> Encoder:
    """The encoder."""
    return Encoder(LINKS[link], form, plant)


def decoder(link: str = "x8", form: str = "structural", plant: ValueLike = 0) -> Decoder:
    """The decoder."""
    return Decoder(LINKS[link], form, plant)
