"""BegunUnits: acknowledged flits of the unit under way, counted from the list of all flits."""

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

_NARROW = LinkConfig(name="narrow", window_flits=3, sequence_numbers=8)

RUNS = (Run("begun_units", config="x8", faults=EVERY), Run("begun_units", config=_NARROW, regress=True))

COVER = Coverage("port.begun_units", ["none sent", "all acknowledged", "1", "2", "3", "full window", "clear", "wraps"])


@cocotb.test(timeout_time=400, timeout_unit="us")
async def counts_flits_of_the_unit_under_way(dut) -> None:
    bench = Bench(dut)
    for port in (dut.enqueue, dut.tail, dut.in_flight, dut.clear):
        port.value = 0
    await bench.start()
    window = bench.cfg.window_flits
    size = 2 << (window + UNIT_FLITS_MAX - 1).bit_length()  # flits that the unit remembers
    tails: list[bool] = []
    acknowledged = unit = 0
    for cycle in range(20_000):
        fills = cycle % 1000 < 400  # nothing is acknowledged, so that the window fills
        full = len(tails) - acknowledged == window
        enqueue = bool(bench.rng.random() < (0.9 if cycle % 4000 < 2000 else 0.4)) and not full
        tail = unit == UNIT_FLITS_MAX - 1 or bool(bench.rng.random() < 0.3)
        clear = bool(bench.rng.random() < (0.002 if cycle % 4000 < 1000 else 0.0002))
        moves = 0 if fills or bench.rng.random() < 0.7 else int(bench.rng.integers(0, len(tails) - acknowledged + 1))
        acknowledged += moves
        dut.enqueue.value = int(enqueue)
        dut.tail.value = int(tail)
        dut.in_flight.value = len(tails) - acknowledged
        dut.clear.value = int(clear)
        await ReadOnly()
        done = tails[:acknowledged][-3:]
        expected = next((n for n, is_tail in enumerate(reversed(done)) if is_tail), len(done))
        assert int(dut.begun.value) == expected, f"cycle {cycle}: {int(dut.begun.value)}, not {expected}"
        COVER.when(not tails, "none sent")
        COVER.when(bool(tails) and acknowledged == len(tails), "all acknowledged")
        COVER.when(expected > 0, str(max(1, expected)))
        COVER.when(full, "full window")
        COVER.when(clear and expected > 0, "clear")
        COVER.when(len(tails) > size, "wraps")
        await RisingEdge(bench.clk)
        if clear:
            tails, acknowledged, unit = [], 0, 0
        elif enqueue:
            tails.append(tail)
            unit = 0 if tail else unit + 1
    COVER.require_all()
