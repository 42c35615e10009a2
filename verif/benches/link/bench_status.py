"""PortStatus: every register holds what the contract says, every other address 0."""

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from rtl.contract.link import LinkCause
from rtl.contract.memmap import LinkRegister
from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

RUNS = (Run("port_status", config="x8", faults=EVERY), Run("port_status", config="x16"))

COVER = Coverage("port.status", [*(r.name for r in LinkRegister), "no register", *(c.name for c in LinkCause)])


@cocotb.test(timeout_time=100, timeout_unit="us")
async def registers_are_where_the_contract_says(dut) -> None:
    bench = Bench(dut)
    pins = {"state": 4, "session": 16, "partner": 16, "in_flight": 10, "tx_width": 5, "rx_width": 5}
    lanes = bench.cfg.lanes + bench.cfg.spare_lanes
    dut.address.value = 0
    await bench.start()
    for _ in range(2000):
        v = {
            name: int(bench.rng.integers(0, 1 << width))
            for name, width in (pins | {"weak_lanes": lanes, "dead_lanes": lanes}).items()
        }
        counts = bench.rng.integers(0, 1 << 32, len(LinkCause)).tolist()
        address = int(bench.rng.choice([*range(0, 0x100, 8), int(bench.rng.integers(0, 256))]))
        for name, value in v.items():
            getattr(dut, name).value = value
        dut.counts.value = sum(c << 32 * n for n, c in enumerate(counts))
        dut.address.value = address
        await RisingEdge(bench.clk)
        await ReadOnly()
        expected = {
            0x00: v["state"],
            0x08: v["session"] | v["partner"] << 16,
            0x10: v["tx_width"] | v["rx_width"] << 8,
            0x18: v["dead_lanes"] | v["weak_lanes"] << 32,
            0x20: v["in_flight"],
            **{0x40 + 8 * n: count for n, count in enumerate(counts)},
        }.get(address, 0)
        assert int(dut.value.value) == expected, f"{address:#x}: {int(dut.value.value):#x}, not {expected:#x}"
        known = {int(r): r.name for r in LinkRegister} | {0x40 + 8 * c: c.name for c in LinkCause}
        COVER.hit(known.get(address, "no register"))
        COVER.when(address == LinkRegister.CAUSE, "CAUSE")
        await RisingEdge(bench.clk)
    COVER.require_all()
