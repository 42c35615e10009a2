"""Both forms of the codec in lockstep: every output on every cycle, whatever goes in."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.link import CRC_ORDER
from verif.agents.bench import Bench
from verif.agents.flits import DAMAGE, beats_of, random_flits
from verif.agents.stall import STYLES, styled
from verif.bench import Run
from verif.checks.coverage import Coverage

_PLANTED = (
    "native encoder: the bytes of the CRC stand in the other order",
    "native encoder: groups 1 and 2 of the FEC are swapped",
    "native encoder: the sums of a flit go on into the next",
    "native encoder: a beat that waits is overwritten by the next",
    "native decoder: groups 1 and 2 of the FEC are swapped",
    "native decoder: the pad of a short group is repaired",
    "native decoder: a wrong check byte cannot be repaired",
    "native decoder: the CRC is not looked at",
    "native decoder: repairs do not reach the syndromes of the CRC",
    "native decoder: a flit to be refused is judged by its codes",
    "native decoder: the DLP leaves as it came",
    "native decoder: refused flits are repaired too",
    "native decoder: groups of refused flits are counted",
    "native decoder: sums of a flit go on into the next",
)

RUNS = (
    Run("codec_lockstep", config="x8", faults=_PLANTED),
    Run("codec_lockstep", config="x16", planted=False, seeds=(1,), regress=True),
    Run("codec_lockstep", config="x8", options={"order": "low_first"}, planted=False, seeds=(1,), regress=True),
)

coverage = Coverage(
    "codec lockstep",
    [
        *DAMAGE, "encoder waits", "encoder idle", "decoder idle", "refused on demand", "beat missing",
        "beat repeated", "any first and last", "reset in flight", "full rate",
    ],
)  # fmt: skip


class Feed:
    """Endless beats, mostly of whole flits."""

    def __init__(self, rng: np.random.Generator, cfg: Any, wild: float, order: str):
        self.rng, self.cfg, self.wild, self.order = rng, cfg, wild, order
        self.words: list[int] = []
        self.flits: list[np.ndarray] = []

    def next(self) -> int:
        """The next beat."""
        rng = self.rng
        if not self.words:
            if not self.flits:  # many at a time: that is what the golden code is fast at
                kinds = [DAMAGE[n] for n in rng.integers(0, len(DAMAGE), 128)]
                self.flits = list(random_flits(rng, kinds, self.cfg.lanes, self.order))
                for kind in kinds:
                    coverage.hit(kind)
            self.words = beats_of(self.flits.pop(), self.cfg.beat_bytes)
        word = self.words.pop(0)
        if rng.random() < self.wild:
            change = int(rng.integers(3))
            if change == 0 and self.words:
                self.words.pop(0)
                coverage.hit("beat missing")
            elif change == 1:
                self.words.insert(0, word)
                coverage.hit("beat repeated")
            else:
                word ^= int(rng.integers(1, 4))
                coverage.hit("any first and last")
        return word


async def run(dut: Any, cycles: int, style: str, wild: float = 0.0, resets: int = 0) -> None:
    """Drive both ports at random; the device itself compares."""
    bench = Bench(dut)
    rng = bench.rng
    for name in ("e__valid", "e_ready", "d_valid", "d_refuse"):
        getattr(dut, name).value = 0
    dut.clear.value = 1
    await bench.start()
    dut.clear.value = 0
    give, take, receive = (styled(style, rng) for _ in range(3))
    order = bench.options.get("order", CRC_ORDER)
    encoder, decoder = (Feed(rng, bench.cfg, wild, order) for _ in range(2))
    at = {int(n) for n in rng.integers(cycles // 4, cycles, resets)}
    edge = RisingEdge(bench.clk)
    offering = False
    for cycle in range(cycles):
        if not offering and not next(give):
            dut.e__payload.value = encoder.next()
            offering = True
        dut.e__valid.value = int(offering)
        ready = not next(take)
        dut.e_ready.value = int(ready)
        hears = not next(receive)
        dut.d_valid.value = int(hears)
        refuse = bool(rng.random() < 0.1)
        dut.d_refuse.value = int(refuse)
        if hears:
            dut.d.value = decoder.next()
        coverage.when(not ready, "encoder waits")
        coverage.when(not offering, "encoder idle")
        coverage.when(not hears, "decoder idle")
        coverage.when(hears and refuse, "refused on demand")
        if cycle in at:
            dut.rst.value = 1
            coverage.hit("reset in flight")
        await edge
        dut.rst.value = 0
        if dut.e__ready.value == 1:
            offering = False
    for name in ("e__valid", "d_valid"):
        getattr(dut, name).value = 0
    await bench.cycles(16)
    encoded, decoded, mismatches = (int(getattr(dut, n).value) for n in ("encoded", "decoded", "mismatches"))
    dut._log.info("%d beats encoded, %d decoded, %d mismatches", encoded, decoded, mismatches)
    least = cycles // 12 if wild == 0 else 1
    assert encoded > least and decoded > least, f"only {encoded} and {decoded} beats left"
    assert mismatches == 0, f"the forms differ in {mismatches} cycles"


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def agree_on_flits(dut: Any, style: str) -> None:
    """Whole flits, every damage, every mix of pauses."""
    await run(dut, 1500, style)
    coverage.when(style == "never", "full rate")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_anything(dut: Any) -> None:
    """Beats missing, repeated, with wrong borders; resets at any time."""
    await run(dut, 3000, "rarely", wild=0.15, resets=8)
    coverage.require_all()
