"""Routes: every port's look-up as the golden table says, while rows, partitions and outputs change."""

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import ENDPOINT_BITS
from verif.agents.bench import Bench
from verif.checks.coverage import Coverage
from verif.golden.switch_buffer import RouteTable

COVER = Coverage(
    "switch.routes",
    [
        "at power-up",
        "hole",
        "hole written",
        "route written",
        "port that is not there",
        "own port",
        "foreign",
        "same partition, not 0",
        "dead",
        "last endpoint",
        "reset keeps the table",
    ],
)


class RoutesBench(Bench):
    """The table beside its golden one; `endpoints` are those asked for, few so that they meet what is written."""

    def __init__(self, dut):
        super().__init__(dut)
        cfg = self.cfg
        self.golden = RouteTable(cfg)
        self.bits = (cfg.outputs - 1).bit_length()
        last = (1 << ENDPOINT_BITS) - 1
        self.endpoints = [*range(cfg.ports + 3), 1 << (ENDPOINT_BITS - 1), last]
        self.written: set[int] = set()
        for port in ("endpoint", "alive", "address", "row_write", "row", "partition_write", "partition"):
            getattr(dut, port).value = 0

    def some(self) -> int:
        """An endpoint."""
        return self.endpoints[int(self.rng.integers(len(self.endpoints)))]

    async def cycle(self, alive: int, write: tuple[int, int, bool] | None, partition: tuple[int, int] | None) -> None:
        """All ports ask; then a row (endpoint, output, hole) and a partition (port, number) are written."""
        dut, cfg, golden = self.dut, self.cfg, self.golden
        asked = [self.some() for _ in range(cfg.ports)]
        dut.endpoint.value = sum(e << ENDPOINT_BITS * p for p, e in enumerate(asked))
        dut.alive.value = alive
        dut.row_write.value, dut.partition_write.value = int(write is not None), int(partition is not None)
        address = write[0] if write else partition[0] if partition else self.some()
        dut.address.value = address
        if write:
            dut.row.value = int(write[2]) << self.bits | write[1]
        if partition:
            dut.partition.value = partition[1]
        await RisingEdge(self.clk)
        outputs, refused, row = int(dut.out_port.value), int(dut.refused.value), int(dut.row_read.value)
        for p, endpoint in enumerate(asked):
            expected, is_refused = golden.look_up(p, endpoint, alive)
            assert bool(refused >> p & 1) == is_refused, f"port {p} to endpoint {endpoint}: refused is not {is_refused}"
            output = outputs >> p * self.bits & (1 << self.bits) - 1
            COVER.when(expected < 0, "hole")
            COVER.when(endpoint == self.endpoints[-1] and expected >= 0, "last endpoint")
            if expected >= 0:
                assert output == expected, f"port {p}: endpoint {endpoint} goes to {output}, not {expected}"
                mine, other = golden.partitions[p], golden.partitions[expected]
                COVER.when(not self.written, "at power-up")
                COVER.when(expected == p and not is_refused, "own port")
                COVER.when(mine != other, "foreign")
                COVER.when(mine == other != 0 and not is_refused, "same partition, not 0")
                COVER.when(not alive >> expected & 1, "dead")
                COVER.when(endpoint in self.written and not is_refused, "route written")
            COVER.when(expected < 0 and endpoint in self.written, "hole written")
        there = golden.routes.get(address)
        assert bool(row >> self.bits) == (there is None), f"the row of {address} reads as {row:x}"
        assert there is None or row & (1 << self.bits) - 1 == there
        if address < cfg.ports:
            assert int(dut.partition_read.value) == golden.partitions[address]
        if write:
            golden.write(*write)
            self.written.add(write[0])
            COVER.when(write[1] >= cfg.ports and not write[2], "port that is not there")
        if partition:
            golden.partitions[partition[0]] = partition[1]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def looks_up_what_was_written(dut) -> None:
    bench = RoutesBench(dut)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    everybody = (1 << cfg.ports) - 1
    for _ in range(40):
        await bench.cycle(everybody, None, None)
    for _ in range(4000):
        alive = everybody
        if rng.integers(3) == 0:
            alive &= ~(1 << int(rng.integers(cfg.ports)))
        write = partition = None
        if rng.integers(4) == 0:
            write = (bench.some(), int(rng.integers(1 << bench.bits)), bool(rng.integers(5) == 0))
        elif rng.integers(4) == 0:
            partition = (int(rng.integers(cfg.ports)), int(rng.choice([0, 0, 7, 15])))
        await bench.cycle(alive, write, partition)
    dut.row_write.value = dut.partition_write.value = 0
    await bench.reset()
    bench.golden.partitions = [0] * cfg.ports
    for _ in range(200):
        await bench.cycle(everybody, None, None)
    COVER.hit("reset keeps the table")


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
