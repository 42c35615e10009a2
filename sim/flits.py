"""Whole arrays of flits through a Verilated encoder or decoder, a beat a cycle."""

from pathlib import Path

import numpy as np

from rtl.contract.link import FLIT_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.port.decoder import Decoder
from rtl.port.encoder import Encoder
from sim.native.library import stream

__all__ = ["through_codec"]


def _beats(flits: np.ndarray, cfg: LinkConfig) -> np.ndarray:
    """Flits [n, 256] as words of the ports, [n * beats, bytes + 1]: bit 0 first, bit 1 last, then the bytes."""
    rows = flits.reshape(-1, cfg.beat_bytes)
    words = np.zeros((len(rows), cfg.beat_bytes + 1), np.uint8)
    words[:, :-1] = rows << 2
    words[:, 1:] |= rows >> 6
    words[:: cfg.beats, 0] |= 1
    words[cfg.beats - 1 :: cfg.beats, 0] |= 2
    return words


def _bytes(words: np.ndarray) -> np.ndarray:
    """The flits of such words."""
    return (words[:, :-1] >> 2 | words[:, 1:] << 6).reshape(-1, FLIT_BYTES)


def through_codec(name: str, library: Path, rows: np.ndarray, cfg: LinkConfig) -> dict[str, np.ndarray]:
    """What flit_encoder makes of information [n, 242], or flit_decoder of flits [n, 256]: the arrays of their units.

    `library`: a build of that top for link `cfg`, of kind native with STREAM_SOURCES.
    """
    flits = np.zeros((len(rows), FLIT_BYTES), np.uint8)
    flits[:, : rows.shape[1]] = rows
    words = _beats(flits, cfg)
    one = np.ones(1, np.uint8)
    if name == "flit_encoder":
        encoded = np.empty_like(words)
        given = {"i__payload": words, "i__valid": one, "o__ready": one}
        stream(library, Encoder.LATENCY, given, {"o__payload": encoded})
        return {"flit": _bytes(encoded)}
    seen = {"o": np.empty_like(words), "o_good": np.empty(len(words), np.uint8)}
    seen["o_groups"] = np.empty_like(seen["o_good"])
    # An element is a beat: the first one leaves DELAY cycles after the last has entered.
    stream(library, cfg.beats - 1 + Decoder.DELAY, {"i": words, "i_valid": one}, seen)
    verdicts = {"valid": seen["o_good"], "corrected": seen["o_groups"]}
    return {"flit": _bytes(seen["o"])} | {k: np.ascontiguousarray(v[:: cfg.beats]) for k, v in verdicts.items()}
