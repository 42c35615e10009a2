"""Egress: every output is the golden one; credits and window are never overspent, whatever units come how."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.rules.credit_sender import COUNT_BITS
from verif.agents.bench import manifest
from verif.bench import EVERY, Run
from verif.benches.switch.egress_driver import COVER, EgressBench

_X8 = LinkConfig(classes=2, shared_flits=12, window_flits=20)
_X4 = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=4)
_X16 = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=16)

RUNS = (
    Run("switch_egress", config=_X8, faults=EVERY),
    Run("switch_egress", config=_X4, regress=True),
    Run("switch_egress", config=_X16, regress=True),
    Run("switch_egress", config="x8", seeds=(1,), regress=True),  # a whole link
)

PROFILES = {
    "plenty": (0.9, 1.0, 0.0),
    "scarce": (0.12, 1.0, 0.0005),
    "slow wire": (0.5, 0.5, 0.0005),
    "sessions": (0.7, 0.9, 0.004),
}


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(profile=list(PROFILES))
async def grants_and_charges_like_golden(dut, profile: str) -> None:
    bench = EgressBench(dut, *PROFILES[profile])
    await bench.start()
    for _ in range(6000):
        await bench.cycle()
    assert bench.spent > 100, f"only {bench.spent} flits went"
    if profile == "plenty":
        slots = 6000 / bench.cfg.flit_cycles
        assert bench.spent >= 0.55 * slots, f"{bench.spent} flits in {slots:.0f} flit times with credits for all"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_account_alone_can_send(dut) -> None:
    """Whichever credits are there, and nothing else: a unit begins exactly if they are enough for it."""
    bench = EgressBench(dut, 0, 0, 0)
    await bench.start()
    link = bench.cfg
    dut.up.value = dut.alive.value = dut.room.value = 1
    for account in range(link.accounts):
        for count in (UNIT_FLITS_MAX - 1, UNIT_FLITS_MAX):
            dut.free.value = count << COUNT_BITS * account
            await RisingEdge(bench.clk)
            own = account < link.queues
            good = {account} if own else {q for q in range(link.queues) if q % 2 == account - link.queues}
            expected = sum(1 << q for q in good) if count == UNIT_FLITS_MAX else 0
            for name in ("ready", "idle_ready"):
                got = int(getattr(dut, name).value)
                assert got == expected, f"{count} credits of account {account}: {name} is {got:b}"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def any_number_counts_whole(dut) -> None:
    """Credits and flits in flight of any size, whatever a link would have, while units are granted and come."""
    bench = EgressBench(dut, 0, 0, 0)
    await bench.start()
    link, rng, golden = bench.cfg, bench.rng, bench.golden
    dut.up.value = dut.alive.value = dut.room.value = 1
    for cycle in range(3000):
        arrives = bool(golden.units) and rng.random() < 0.5
        tail = arrives and (golden.units[0].left == 1 or rng.random() < 0.3)
        granted = (tail or not golden.units) and rng.random() < 0.5
        queue = int(rng.integers(link.queues))
        due = golden.due + UNIT_FLITS_MAX * granted
        few = rng.integers(UNIT_FLITS_MAX + 3, size=link.accounts)
        high = 1 << rng.integers(COUNT_BITS, size=link.accounts)
        free = np.where(rng.random(link.accounts) < 0.3, few | high, few)
        if rng.random() < 0.5:  # just enough, or not
            free[link.queues :] = due + UNIT_FLITS_MAX + rng.integers(-1, 2, size=2)
        elif rng.random() < 0.5:  # one bit, or none
            free[link.queues :] = high[link.queues :] * rng.integers(2, size=2)
        in_flight = int(rng.integers(link.window_flits + 2))
        if rng.random() < 0.7:
            in_flight = max(link.window_flits - due - UNIT_FLITS_MAX - int(rng.integers(3)), 0)
        free = free.tolist()
        idle = golden.ready(free, in_flight, True) if not golden.due else set()
        if granted:
            golden.grant(queue)
        ready = golden.ready(free, in_flight, True)
        header = int(rng.integers(1 << 32))
        dut.granted.value, dut.queue.value, dut.in_flight.value = int(granted), queue, in_flight
        dut.free.value = sum(f << COUNT_BITS * n for n, f in enumerate(free))
        dut.i_valid.value = int(arrives)
        dut.i.value = 1 | header << 2 | int(tail) << 3 + 9 * link.beat_bytes
        await RisingEdge(bench.clk)
        for name, expected in (("ready", ready), ("idle_ready", idle)):
            got = int(getattr(dut, name).value)
            assert got == sum(1 << q for q in expected), f"cycle {cycle}: {name} {got:b}, {free} are free"
        if arrives:
            expected = golden.arrive(header, 0, int(tail), free, True)
            assert (int(dut.account.value), int(dut.header.value)) == (expected.account, expected.header)


@cocotb.test(skip=manifest().config.window_flits >= 64)
async def covered(dut) -> None:
    COVER.require_all()
