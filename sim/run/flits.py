"""Whole arrays of flits through a Verilated encoder or decoder, a beat a cycle."""

from pathlib import Path

import numpy as np

from rtl.contract.link import FLIT_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.codec.decoder import Decoder
from rtl.link.codec.encoder import Encoder
from sim.native.streaming import stream

__all__ = ["from_words", "stream_words", "through_codec", "to_words"]


def to_words(flits: np.ndarray, cfg: LinkConfig) -> np.ndarray:
    """Flits [n, 256] as words of the ports, [n * beats, bytes + 1]: bit 0 first, bit 1 last, then the bytes."""
    rows = flits.reshape(-1, cfg.beat_bytes)
    words = np.zeros((len(rows), cfg.beat_bytes + 1), np.uint8)
    words[:, :-1] = rows << 2
    words[:, 1:] |= rows >> 6
    words[:: cfg.beats, 0] |= 1
    words[cfg.beats - 1 :: cfg.beats, 0] |= 2
    return words


def from_words(words: np.ndarray) -> np.ndarray:
    """The flits of such words."""
    return (words[:, :-1] >> 2 | words[:, 1:] << 6).reshape(-1, FLIT_BYTES)


def through_codec(name: str, library: Path, flits: np.ndarray, cfg: LinkConfig) -> dict[str, np.ndarray]:
    """What flit_encoder or flit_decoder makes of flits [n, 256]: `flit`, and of a decoder `valid`, `corrected` [n].

    `library`: a build of that top for link `cfg`, of kind native with STREAM_SOURCES.
    """
    words = to_words(flits, cfg)
    seen = stream_words(name, library, words, cfg)
    verdicts = {"o_good": "valid", "o_groups": "corrected"}
    found = {"flit": from_words(next(iter(seen.values())))}
    return found | {to: np.ascontiguousarray(seen[by][:: cfg.beats]) for by, to in verdicts.items() if by in seen}


def stream_words(name: str, library: Path, words: np.ndarray, cfg: LinkConfig) -> dict[str, np.ndarray]:
    """Words of the ports through the unit, one a cycle; what its outputs show for each, the words first."""
    one = np.ones(1, np.uint8)
    if name == "flit_encoder":
        seen = {"o__payload": np.empty_like(words)}
        stream(library, Encoder.LATENCY, {"i__payload": words, "i__valid": one, "o__ready": one}, seen)
    else:
        seen = {"o": np.empty_like(words)} | {k: np.empty(len(words), np.uint8) for k in ("o_good", "o_groups")}
        # The first beat of a flit leaves DELAY cycles after its last has entered.
        stream(library, cfg.beats - 1 + Decoder.DELAY, {"i": words, "i_valid": one}, seen)
    return seen
