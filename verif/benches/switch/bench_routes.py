"""Routes: every look-up as the golden table says, while rows, partitions and live outputs change."""

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import ENDPOINT_BITS
from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.switch_routes import RouteTable

_READABLE = {"read_back": True}  # a table that shows its rows too

RUNS = (
    Run("switch_routes", config="sw4", options=_READABLE, faults=EVERY),
    Run("switch_routes", config="sw20", options=_READABLE, regress=True),
)

_REASONS = ("hole", "foreign", "dead")
COVER = Coverage(
    "switch.routes",
    [
        *_REASONS,
        "free",
        "foreign and dead",
        "at power-up",
        "above the ports at power-up",
        "hole written",
        "route written",
        "not a port",
        "last endpoint",
        "asked while it is written",
        "a reset keeps the table",
        "a hole read",
        "a route read",
        "read in the cycle after it was written",
    ],
)


class RoutesBench(Bench):
    """The table beside its golden one; few endpoints are asked for, so that they meet what is written."""

    def __init__(self, dut):
        super().__init__(dut)
        self.golden = RouteTable(self.cfg)
        last = (1 << ENDPOINT_BITS) - 1
        self.endpoints = [*range(self.cfg.ports + 3), 1 << (ENDPOINT_BITS - 1), last]
        self.written: set[int] = set()
        self.asked: int | None = None  # endpoint whose route was to be read in the cycle before
        self.row = 0  # what it was then
        self.just_written = -1  # endpoint whose row was written in the cycle before
        for port in ("endpoint", "alive", "same", "write", "write_endpoint", "write_route", "read_endpoint"):
            getattr(dut, port).value = 0

    def some(self) -> int:
        """An endpoint."""
        return self.endpoints[int(self.rng.integers(len(self.endpoints)))]

    async def cycle(self, endpoint: int, same: int, alive: int, write: tuple[int, int, bool] | None = None) -> None:
        """A look-up; then a row (endpoint, output, there) is written."""
        dut, golden = self.dut, self.golden
        dut.endpoint.value, dut.same.value, dut.alive.value = endpoint, same, alive
        dut.write.value = int(write is not None)
        if write:
            dut.write_endpoint.value = write[0]
            dut.write_route.value = int(write[2]) << 7 | write[1]
        reads = self.some()
        dut.read_endpoint.value = reads
        await RisingEdge(self.clk)
        if self.asked is not None:
            told = int(dut.read_route.value)
            assert told == self.row, f"endpoint {self.asked} reads as {told:#x}, golden {self.row:#x}"
            COVER.hit("a route read" if self.row else "a hole read")
        self.asked, self.row = reads, golden.read(reads)
        COVER.when(reads == self.just_written, "read in the cycle after it was written")
        self.just_written = -1
        expected, reason = golden.look_up(endpoint, same, alive)
        told = [name for name in _REASONS if getattr(dut, name).value == 1]
        assert told == ([reason] if reason else []), f"endpoint {endpoint}: {told}, golden {reason or 'none'}"
        assert bool(dut.refused.value) == bool(reason), f"endpoint {endpoint}: refused"
        if expected is not None:
            assert int(dut.route.value) == expected, f"endpoint {endpoint} goes to {int(dut.route.value)}"
            COVER.when(not (same | alive) >> expected & 1, "foreign and dead")
            COVER.when(endpoint in self.written, "route written")
            COVER.when(endpoint == self.endpoints[-1], "last endpoint")
            COVER.when(not self.written, "at power-up")
        else:
            COVER.when(endpoint in self.written, "hole written")
            COVER.when(not self.written, "above the ports at power-up")
        COVER.hit(reason or "free")
        if write:
            COVER.when(write[0] == endpoint, "asked while it is written")
            COVER.when(write[1] >= self.cfg.ports and write[2], "not a port")
            golden.write(*write)
            self.just_written = write[0]
            self.written.add(write[0])


@cocotb.test(timeout_time=100, timeout_unit="us")
async def looks_up_what_was_written(dut) -> None:
    bench = RoutesBench(dut)
    await bench.start()
    rng, n = bench.rng, bench.cfg.outputs
    everybody = (1 << n) - 1
    for endpoint in bench.endpoints:
        await bench.cycle(endpoint, everybody, everybody)
    for _ in range(6000):
        same, alive = (everybody & ~sum(1 << int(k) for k in set(rng.integers(n, size=n // 3).tolist())) for _ in "sa")
        write = None
        if rng.integers(4) == 0:
            top = 128 if rng.integers(2) else n
            write = (bench.some(), int(rng.integers(top)), bool(rng.integers(5)))
        await bench.cycle(bench.some(), same, alive, write)
    dut.write.value = 0
    await bench.reset()
    bench.asked = None
    for endpoint in bench.endpoints:
        await bench.cycle(endpoint, everybody, everybody)
    COVER.hit("a reset keeps the table")


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
