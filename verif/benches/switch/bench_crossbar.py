"""Crossbar: every beat comes out where, and only where, an output listens to its input."""

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.switch_output import Crossbar

_FOUR = SwitchConfig(ports=4, link=LinkConfig(classes=2, shared_flits=12, window_flits=20))

RUNS = (Run("switch_crossbar", config=_FOUR, faults=EVERY),)

COVER = Coverage(
    "switch.crossbar",
    [
        "every pair",
        "beat",
        "nothing at the input",
        "to nobody",
        "two outputs listen to one input",
        "tuned again",
        "muted",
        "tuned and muted",
        "all outputs at once",
    ],
)


class CrossbarBench(Bench):
    """The unit beside the golden one."""

    def __init__(self, dut):
        super().__init__(dut)
        cfg = self.cfg
        self.n = cfg.outputs
        self.golden = Crossbar(self.n)
        self.beat_bits = 4 + 9 * cfg.link.beat_bytes
        self.source_bits = (cfg.inputs - 1).bit_length()
        self.pairs: set[tuple[int, int]] = set()
        for name in ("tune", "mute", "source", "i_valid", "i"):
            getattr(dut, name).value = 0

    async def cycle(self, valid: int, tunes: dict[int, int], mutes: set[int]) -> None:
        """One cycle with random beats at the inputs in `valid`."""
        dut, n, size = self.dut, self.n, self.beat_bits
        beats = [int.from_bytes(self.rng.bytes(-(-size // 8)), "little") % (1 << size) for _ in range(n)]
        sources = [tunes.get(o, int(self.rng.integers(n))) for o in range(n)]
        dut.i_valid.value = valid
        dut.i.value = sum(beat << size * k for k, beat in enumerate(beats))
        dut.tune.value, dut.mute.value = sum(1 << o for o in tunes), sum(1 << o for o in mutes)
        dut.source.value = sum(s << self.source_bits * o for o, s in enumerate(sources))
        await RisingEdge(self.clk)
        shown, words = int(dut.o_valid.value), int(dut.o.value)
        listens = self.golden.listens
        for o, source in enumerate(listens):
            expected = source is not None and valid >> source & 1
            assert shown >> o & 1 == expected, f"output {o} listens to {source}: valid {shown >> o & 1}"
            if expected and source is not None:
                word = words >> size * o & ((1 << size) - 1)
                assert word == beats[source], f"output {o}: not the beat of input {source}"
                self.pairs.add((source, o))
                COVER.hit("beat")
                COVER.when(listens.count(source) > 1, "two outputs listen to one input")
            elif source is not None:
                COVER.hit("nothing at the input")
        COVER.when(any(listens.count(k) == 0 for k in range(n) if valid >> k & 1), "to nobody")
        COVER.when(shown == (1 << n) - 1, "all outputs at once")
        for o in tunes:
            COVER.when(listens[o] not in (None, tunes[o]), "tuned again")
        COVER.when(mutes - set(tunes), "muted")
        COVER.when(mutes & set(tunes), "tuned and muted")
        self.golden.step(tunes, mutes)
        COVER.when(len(self.pairs) == n * n, "every pair")


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(tuned=[0.05, 0.5], shown=[0.5, 0.97])
async def beats_come_out_where_they_are_listened_to(dut, tuned: float, shown: float) -> None:
    bench = CrossbarBench(dut)
    await bench.start()
    rng, n = bench.rng, bench.n
    for _ in range(2000):
        tunes = {o: int(rng.integers(n)) for o in range(n) if rng.random() < tuned}
        mutes = {o for o in range(n) if rng.random() < 0.1}
        await bench.cycle(sum(1 << k for k in range(n) if rng.random() < shown), tunes, mutes)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_permutation_goes_through_at_once(dut) -> None:
    bench = CrossbarBench(dut)
    await bench.start()
    n, everybody = bench.n, (1 << bench.n) - 1
    for shift in range(n):
        await bench.cycle(0, {o: (o + shift) % n for o in range(n)}, set(range(n)))
        for _ in range(3):
            await bench.cycle(everybody, {}, set())
    await bench.cycle(everybody, {}, set(range(n)))
    await bench.cycle(everybody, {}, set())


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
