"""PortRegisters: every register is where the contract says; counters add and stop; the first refused unit stays."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.link import ENDPOINT_BITS, PACKET_HEADER, LinkCause
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_registers import SwitchCause, SwitchRegister
from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

_LINK = LinkConfig(classes=2, shared_flits=12, window_flits=20)
_SHORT = {"count_bits": 14}  # counters that reach their end

RUNS = (
    Run("switch_port_registers", config=_LINK, options=_SHORT, faults=EVERY),
    Run("switch_port_registers", config=_LINK, seeds=(1,), regress=True),
)

COVER = Coverage(
    "switch.port_registers",
    [
        *(r.name for r in SwitchRegister),
        *(c.name for c in LinkCause),
        *(f"switch {c.name}" for c in SwitchCause),
        "no register",
        "several at once",
        "stops at its end",
        "exactly at its end",
        "second refusal",
    ],
)
_STEP = 10
_NO_REGISTER = 0xFF
_PINS = {"state": 4, "alive": 1, "session": 16, "partner": 16, "partition": 4, "disabled": 1, "in_flight": 5}


class RegistersBench(Bench):
    """The unit beside plain counters."""

    def __init__(self, dut):
        super().__init__(dut)
        self._forgotten()
        self.pins = dict.fromkeys(_PINS, 0)
        self.end = (1 << self.options.get("count_bits", 32)) - 1
        for name in ("address", "link_steps", "steps", "refused", "endpoint", "packet", *_PINS):
            getattr(dut, name).value = 0

    async def forget(self) -> None:
        """A reset."""
        for port in (self.dut.refused, self.dut.link_steps, self.dut.steps):
            port.value = 0
        self.dut.address.value = _NO_REGISTER
        await self.reset(1)
        self._forgotten()

    def _forgotten(self) -> None:
        self.counts = {"link": np.zeros(len(LinkCause), np.int64), "switch": np.zeros(len(SwitchCause), np.int64)}
        self.first: tuple[int, int, int] | None = None  # endpoint, source, address
        self.shown = 0

    def expected(self, address: int) -> int:
        """What the register at `address` holds now."""
        pins = self.pins
        endpoint, source, first = self.first or (0, 0, 0)
        plain = {
            0x00: pins["state"] | pins["alive"] << 8,
            0x08: pins["session"] | pins["partner"] << 16,
            0x10: pins["partition"],
            0x18: pins["disabled"],
            0x20: pins["in_flight"],
            0x28: first,
            0x30: source | endpoint << 16 | int(self.first is not None) << 63,
            **{0x40 + 8 * n: int(c) for n, c in enumerate(self.counts["link"])},
            **{0xC0 + 8 * n: int(c) for n, c in enumerate(self.counts["switch"])},
        }
        return plain.get(address, 0)

    async def cycle(self, address: int, steps: dict[str, np.ndarray], refuse: bool) -> None:
        """One cycle with these steps of both kinds."""
        dut, rng = self.dut, self.rng
        self.pins = {name: int(rng.integers(1 << width)) for name, width in _PINS.items()}
        packet = {f.name: int.from_bytes(rng.bytes(8), "little") % (1 << f.width) for f in PACKET_HEADER}
        endpoint = int(rng.integers(1 << ENDPOINT_BITS))
        for name, value in self.pins.items():
            getattr(dut, name).value = value
        dut.address.value, dut.refused.value, dut.endpoint.value = address, int(refuse), endpoint
        dut.packet.value = PACKET_HEADER.pack(packet)
        for name, port in (("link", dut.link_steps), ("switch", dut.steps)):
            port.value = sum(int(s) << _STEP * n for n, s in enumerate(steps[name]))
        expected = self.expected(address)
        await RisingEdge(self.clk)
        got = int(dut.value.value)  # of the cycle before
        assert got == self.shown, f"before {address:#x}: {got:#x}, not {self.shown:#x}"
        self.shown = expected
        if refuse:
            COVER.when(self.first, "second refusal")
            self.first = self.first or (endpoint, packet["source"], packet["address"])
        for name, step in steps.items():
            COVER.when((step > 0).sum() > 1, "several at once")
            after = self.counts[name] + step
            COVER.when((after > self.end).any(), "stops at its end")
            COVER.when((after == self.end).any(), "exactly at its end")
            self.counts[name] = np.minimum(after, self.end)
        names = {int(r): r.name for r in SwitchRegister if r not in (SwitchRegister.LINK_CAUSE, SwitchRegister.CAUSE)}
        names |= {0x40 + 8 * c: c.name for c in LinkCause} | {0xC0 + 8 * c: f"switch {c.name}" for c in SwitchCause}
        COVER.hit(names.get(address, "no register"))
        COVER.when(address == SwitchRegister.LINK_CAUSE, "LINK_CAUSE")
        COVER.when(address == SwitchRegister.CAUSE, "CAUSE")

    def steps(self, share: float, most: int) -> dict[str, np.ndarray]:
        """Random steps of both kinds."""
        return {
            name: np.where(self.rng.random(len(c)) < share, self.rng.integers(0, most + 1, len(c)), 0)
            for name, c in self.counts.items()
        }


@cocotb.test(timeout_time=200, timeout_unit="us")
async def registers_are_where_the_contract_says(dut) -> None:
    bench = RegistersBench(dut)
    await bench.start()
    for n in range(2500):
        address = int(bench.rng.choice([*range(0, 0x100, 8), int(bench.rng.integers(256))]))
        await bench.cycle(address, bench.steps(0.3, 1023 if n % 2 else 1), bench.rng.random() < 0.01)
    assert bench.first
    for _ in range(40):  # the first unit refused is kept, bit for bit
        await bench.forget()
        for address in (0, SwitchRegister.FIRST_ADDRESS, SwitchRegister.FIRST_SOURCE, 0):
            await bench.cycle(int(address), bench.steps(0.3, 1), bench.first is None)
    if bench.options:
        COVER.require_all()
    else:
        COVER.write()
