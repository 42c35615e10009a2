"""Clock gate: at a shared edge every register sees the others as before it, whichever clocks run."""

import cocotb

from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

RUNS = (Run("clock_gate", faults=EVERY),)

COVERAGE = Coverage(
    "base.clock_gate",
    [
        "no gated clock",
        "first only",
        "second only",
        "both",
        "a clock starts",
        "a clock stops",
        "reset while a clock stands",
    ],
)
BINS = ("no gated clock", "first only", "second only", "both")
MASK = 0xFFFF


def after(state: tuple[int, ...], enable: int) -> tuple[int, ...]:
    """Values of root, a, b, edges after an edge that ends a cycle with `enable`."""
    root, a, b, edges = state
    return (
        (5 * root + a + 3 * b + 1) & MASK,
        (3 * a + root + b) & MASK if enable & 1 else a,
        (7 * b + (root ^ a)) & MASK if enable & 2 else b,
        (edges + (enable & 1)) & 0xFF,
    )


@cocotb.test(timeout_time=100, timeout_unit="us")
async def clocks_exchange_data_without_a_race(dut) -> None:
    bench = Bench(dut)
    dut.enable.value = 0
    await bench.start()
    handles = (dut.root, dut.a, dut.b, dut.edges)
    state = tuple(int(h.value) for h in handles)  # before the edge that has just come
    enable = 0
    resets = False
    for _ in range(2000):
        state = (0, 0, 0, 0) if resets else after(state, enable)
        following = int(bench.rng.integers(4))
        dut.enable.value = following
        resets = bool(bench.rng.random() < 0.02)
        dut.rst.value = int(resets)
        await bench.edge
        seen = tuple(int(h.value) for h in handles)
        assert seen == state, f"root, a, b, edges are {seen}, not {state}"
        COVERAGE.hit(BINS[following])
        COVERAGE.when(following & ~enable, "a clock starts")
        COVERAGE.when(enable & ~following, "a clock stops")
        COVERAGE.when(resets and following != 3 and any(state), "reset while a clock stands")
        enable = following
    COVERAGE.require_all()
