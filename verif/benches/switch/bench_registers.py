"""Registers of a switch: writes reach one port or one route and nothing else, reads are two cycles late."""

from collections import deque

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import (
    ADDRESS_BITS,
    ResponderRegister,
    SwitchRegister,
    SwitchSpace,
    port_address,
    route_address,
)
from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

_FOUR = SwitchConfig(ports=4, link=LinkConfig(classes=2, shared_flits=12, window_flits=20))
_FEW = {"count_bits": 10}  # counters that reach their end

RUNS = (
    Run("switch_registers", config=_FOUR, options=_FEW, faults=EVERY),
    Run("switch_registers", config=_FOUR, seeds=(1,), regress=True),
)

COVER = Coverage(
    "switch.registers",
    [
        "partition",
        "taken out",
        "put back",
        "route",
        "no route",
        "first and last endpoint",
        "a register that can only be read",
        "a port that is not there",
        "not a multiple of 8",
        "read a port",
        "read a route",
        "read a port that is not there",
        "all in one partition",
        "alone in a partition",
        "write and read in a row",
        *(f"responder {r.name}" for r in ResponderRegister),
        "a responder's counter stops at its end",
    ],
)


_STEPS = {
    ResponderRegister.ANSWERED: "answered",
    ResponderRegister.UNSENT: "unsent_flits",
    ResponderRegister.PARITY: "bad_parity",
}


class RegistersBench(Bench):
    """The unit beside dictionaries."""

    def __init__(self, dut):
        super().__init__(dut)
        p = self.cfg.ports
        self.partition, self.disabled = [0] * p, [0] * p
        self.route: tuple[int, int] | None = None  # written in the cycle before
        self.answers: deque[int] = deque()  # to come
        self.asked: int | None = None  # address of the cycle before
        self.routed = 0  # the route that was to be read then
        self.counts = dict.fromkeys(ResponderRegister, 0)
        self.counted = 0  # what the responder's register at `asked` held then
        self.end = (1 << self.options.get("count_bits", 32)) - 1
        for name in ("write", "address", "data", "values", "read_route", *_STEPS.values()):
            getattr(dut, name).value = 0

    async def cycle(self, address: int, write: int | None = None) -> None:
        """One cycle; what the last ones did is seen in it."""
        dut, rng, p = self.dut, self.rng, self.cfg.ports
        values = [int.from_bytes(rng.bytes(8), "little") for _ in range(p)]  # each port's answer to the last address
        dut.values.value = sum(v << 64 * k for k, v in enumerate(values))
        route = int(rng.integers(256))
        dut.read_route.value = route
        steps = {r: int(rng.integers(5 if r == ResponderRegister.UNSENT else 2)) for r in ResponderRegister}
        for register, step in steps.items():
            getattr(dut, _STEPS[register]).value = step
        dut.address.value, dut.write.value = address, int(write is not None)
        dut.data.value = write if write is not None else int.from_bytes(rng.bytes(8), "little")
        asked = self.asked
        if asked is not None:
            port = (asked - SwitchSpace.PORT) >> 8
            shown = route & 0x7F | route >> 7 << 15 if port < 0 else self.counted
            self.answers.append(values[port] if 0 <= port < p else shown)
            COVER.when(port < 0, "read a route")
            COVER.when(0 <= port < p, "read a port")
            COVER.when(port >= p, "read a port that is not there")
        await RisingEdge(self.clk)
        self.check()
        assert address >= SwitchSpace.PORT or int(dut.read_endpoint.value) == address // 8
        self.asked = address
        self.counted = 0
        for counter in ResponderRegister:
            if address == SwitchSpace.RESPONDER + counter:
                self.counted = self.counts[counter]
                COVER.hit(f"responder {counter.name}")
        for counter, step in steps.items():
            after = self.counts[counter] + step
            COVER.when(after > self.end, "a responder's counter stops at its end")
            self.counts[counter] = min(after, self.end)
        self.route = None
        if write is not None:
            self.written(address, write)

    def check(self) -> None:
        """Everything that is seen in this cycle."""
        dut, p = self.dut, self.cfg.ports
        n = p + 1
        partition, same = int(dut.partition.value), int(dut.same.value)
        assert [partition >> 4 * k & 15 for k in range(p)] == self.partition
        assert int(dut.disabled.value) == sum(d << k for k, d in enumerate(self.disabled))
        for k in range(n):
            row = [same >> k * n + o & 1 for o in range(n)]
            expected = [int(k == p or o == p or self.partition[k] == self.partition[o]) for o in range(n)]
            assert row == expected, f"row {k}: {row}, not {expected}"
        assert int(dut.route_write.value) == (self.route is not None)
        if self.route:
            told = (int(dut.route_endpoint.value), int(dut.route.value))
            assert told == self.route, f"route {told}, not {self.route}"
        if len(self.answers) > 1:
            answer = self.answers.popleft()
            assert answer is None or int(dut.read_data.value) == answer, (
                f"{int(dut.read_data.value):#x}, not {answer:#x}"
            )
        COVER.when(len(set(self.partition)) == 1, "all in one partition")
        COVER.when(any(self.partition.count(x) == 1 for x in self.partition), "alone in a partition")

    def written(self, address: int, value: int) -> None:
        """What a write changes."""
        port, register = (address - SwitchSpace.PORT) >> 8, address & 0xFF
        if port < 0:
            endpoint = address // 8
            self.route = (endpoint, value & 0x7F | value >> 8 & 0x80)
            COVER.hit("route" if value >> 15 & 1 else "no route")
            COVER.when(endpoint in (0, (1 << ENDPOINT_BITS) - 1), "first and last endpoint")
        elif port >= self.cfg.ports:
            COVER.hit("a port that is not there")
        elif register == SwitchRegister.PARTITION:
            self.partition[port] = value & 15
            COVER.hit("partition")
        elif register == SwitchRegister.CONTROL:
            COVER.hit("taken out" if value & 1 else "put back")
            self.disabled[port] = value & 1
        else:
            COVER.hit("a register that can only be read" if address % 8 == 0 else "not a multiple of 8")

    def address(self) -> int:
        """Any address, often one that matters."""
        rng = self.rng
        kind = rng.integers(7)
        if kind == 0:
            return int(rng.integers(1 << ADDRESS_BITS))
        if kind == 1:
            return route_address(int(rng.choice([0, (1 << ENDPOINT_BITS) - 1, rng.integers(1 << ENDPOINT_BITS)])))
        if kind == 6:
            return SwitchSpace.RESPONDER + int(rng.integers(32) if rng.integers(2) else rng.choice([0, 8, 16]))
        port = int(rng.integers(self.cfg.ports + 2))
        register = SwitchRegister(int(rng.choice([int(r) for r in SwitchRegister])))
        if kind < 4:
            register = SwitchRegister.PARTITION if rng.random() < 0.6 else SwitchRegister.CONTROL
        return port_address(port, register)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def writes_reach_what_they_name(dut) -> None:
    bench = RegistersBench(dut)
    await bench.start()
    wrote = False
    for n in range(4000):
        write = bench.rng.random() < 0.5
        few = n // 500 % 2  # partitions are few for a while, so that ports share one
        value = int.from_bytes(bench.rng.bytes(8), "little")
        value = value & ~0xE if few else value
        await bench.cycle(bench.address(), value if write else None)
        COVER.when(wrote and not write, "write and read in a row")
        wrote = write
    if bench.options:
        COVER.require_all()
    else:
        COVER.write()
