"""What encoder and decoder of a flit share: their streams and forms."""

from amaranth.hdl import Cat, Mux, Value
from amaranth.lib import data

from rtl.contract.link import FEC_GROUPS, FLIT_BYTES
from rtl.contract.link_config import LinkConfig

__all__ = ["FIXES", "FORMS", "FORM_ERROR", "without_tail"]

FORMS = ("structural", "native")
"""structural: networks of XOR and small tables. native: a C++ model called by DPI, for simulation only."""

FORM_ERROR = "a codec's form is structural or native, not {!r}"

FIXES = data.ArrayLayout(data.StructLayout({"hit": 1, "byte": 8}), FEC_GROUPS)
"""The byte of a flit that the FEC found wrong in each group; 0 without `hit`."""


def without_tail(cfg: LinkConfig, beat: data.View, begin: int) -> Value:
    """The bytes of a beat, with those of a flit from `begin` on as 0; they are in its last beat."""
    kept = 8 * (cfg.beat_bytes - (FLIT_BYTES - begin))
    return Cat(beat.data[:kept], Mux(beat.last, 0, beat.data[kept:]))
