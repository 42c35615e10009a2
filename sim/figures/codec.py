"""Figures of the flit codec: how fast a simulator runs it, a beat in every cycle."""

import time

import numpy as np

from rtl.contract.link import FLIT_BYTES, FLIT_INFO_BYTES
from rtl.contract.link_config import LINKS
from sim.build.model import build
from sim.figures.rows import Bench
from sim.native.streaming import STREAM_SOURCES
from sim.run.flits import from_words, stream_words, to_words

__all__ = ["codec_figures"]

_FLITS = 200_000


def codec_figures(bench: Bench) -> None:
    """Encoder and decoder in both forms, and the cycles a second of one of each."""
    flits = np.random.default_rng(1).integers(0, 256, (_FLITS, FLIT_BYTES), np.uint8)
    for link in ("x8", "x16"):
        cfg = LINKS[link]
        for form in ("structural", "native"):
            seconds: dict[str, float] = {}
            words = to_words(flits, cfg)
            seen = {"": words}
            for top in ("flit_encoder", "flit_decoder"):
                bench.say(f"running {top} {link} {form}")
                library = build(top, cfg, kind="native", options={"form": form}, extra_cpp=STREAM_SOURCES).binary
                words = next(iter(seen.values()))
                seconds[top] = float("inf")
                for _ in range(3):
                    begin = time.thread_time()
                    seen = stream_words(top, library, words, cfg)
                    seconds[top] = min(seconds[top], time.thread_time() - begin)
            kept = (from_words(seen["o"])[:, :FLIT_INFO_BYTES] == flits[:, :FLIT_INFO_BYTES]).all()
            each = ", ".join(f"{top.removeprefix('flit_')} {len(words) / s:,.0f}" for top, s in seconds.items())
            bench.add(
                name=f"codec-{link}-{form}",
                what=f"flit codec {link}, {form}, encoder and decoder: cycles a second of processor time",
                value=len(words) / sum(seconds.values()),
                unit="cycles/s",
                target="",
                peer=each,
                match=bool(kept and seen["o_good"].all() and not seen["o_groups"].any()),
            )
