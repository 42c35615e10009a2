"""Two ends with broken wires between them: lanes killed at any time, weak lanes, outages; nothing wrong gets through.

States of the ends and the FEC are stand-ins here: a flit with at most one wrong byte a FEC group counts as corrected,
any other as refused; 64 refused in a row, or `realign`, and an end aligns.
"""

from dataclasses import replace
from typing import Any

import cocotb

from rtl.contract.link_config import LINKS, LinkConfig
from verif.agents.bench import manifest
from verif.bench import Run, noticed_by
from verif.benches.link.lane_pair_driver import COVER, KINDS, NOISE, begin, used_lane
from verif.golden.lanes import lane_map


def _link(name: str, spares: int) -> LinkConfig:
    """A link whose lanes are called weak soon."""
    return replace(LINKS[name], spare_lanes=spares, weak_corrections=8)


_BOTH = {"interval": 64, "delay": 100}
_OTHERS = (("x1", 1), ("x2", 2), ("x4", 0), ("x16", 1))
"""At x16 the wires hold more flits than an end may refuse in a row."""

_PLANTED = (
    "the mask of the partner is not obeyed",
    "a dead lane is not noticed",
    "the scrambler of the sender does not start again at a marker",
    "the scrambler of the receiver does not start again at a marker",
    *noticed_by(
        "weak_lanes",
        "the map changes between markers",
        "markers between flits do not change the map",
        "a weak lane is not noticed",
    ),
)

RUNS = (
    Run("lane_pair", config=_link("x8", 2), options=_BOTH, faults=_PLANTED, slow=True),
    *(Run("lane_pair", config=_link(*other), options=_BOTH, slow=True, regress=True) for other in _OTHERS),
)


@cocotb.test(timeout_time=4000, timeout_unit="us")
@cocotb.parametrize(kind=list(KINDS))
async def lanes_die(dut: Any, kind: str) -> None:
    """One after the other at random times, until only one lane is left or three have died; then both directions."""
    bench = await begin(dut)
    e = int(bench.rng.integers(2))
    for _ in range(min(3, bench.physical - 1)):
        await bench.run(int(bench.rng.integers(3 * bench.cfg.flit_cycles)))
        aligns = [len(end.why) for end in bench.ends]
        width = len(lane_map(bench.healthy(e), bench.cfg.lanes, bench.physical))
        times = await bench.kill((e, used_lane(bench, e)), kind=KINDS[kind])
        after = len(lane_map(bench.healthy(e), bench.cfg.lanes, bench.physical))
        bench.note(f"{width} to {after} lanes", times, e)
        COVER.hit(f"a lane dies: {kind}")
        COVER.when(after == width, "the spare takes over")
        COVER.when(after < width, "the width halves")
        why = [end.why[aligns[k] :] for k, end in enumerate(bench.ends)]
        if why[1 - e][:1] == ["refused"] and why[e] == ["realign"]:
            COVER.hit("one end aligns by 64 refused flits, the other by its markers")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def both_directions(dut: Any) -> None:
    """A lane of each direction in the same cycle: masks travel over the other, broken direction."""
    bench = await begin(dut)
    if bench.physical > 1:
        for _ in range(min(2, bench.physical - 1)):
            times = await bench.kill((0, used_lane(bench, 0)), (1, used_lane(bench, 1)), kind=NOISE)
            bench.note("a lane dies in each direction", times)
    COVER.hit("both directions at once")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def two_lanes(dut: Any) -> None:
    """A second lane, of either direction, a little after the first: in flits, while aligning, or right after."""
    for _ in range(3):
        bench = await begin(dut)
        if bench.physical > 2:
            e = int(bench.rng.integers(2))
            first = used_lane(bench, e)
            other = int(bench.rng.integers(2))
            left = [p for p in lane_map(0, bench.cfg.lanes, bench.physical) if other != e or p != first]
            lane = int(bench.rng.choice(left))
            times = await bench.kill((e, first), kind=NOISE, then=(other, lane))
            bench.note("a second lane dies soon after", times)
    COVER.hit("a second lane dies while the first is being replaced")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def weak_lanes(dut: Any) -> None:
    """Single wrong bytes on a lane: no flit is lost; singled out, it gives way to a spare; without one it stays."""
    bench = await begin(dut)
    for e in (0, 1):
        receiver = bench.ends[1 - e]
        bench.flip_lane[e] = lane = used_lane(bench, e)
        refused = [end.refused for end in bench.ends]
        leaves = bench.physical > bench.cfg.lanes
        expected = lane_map(bench.everywhere & ~(leaves << lane), bench.cfg.lanes, bench.physical)
        for _ in range(4000 * bench.cfg.flit_cycles):
            await bench.run(1)
            left = not int(receiver.s["mask"].value) >> lane & 1
            if (left and int(receiver.s["width"].value) == len(expected)) or receiver.corrected > 200:
                break
        if not leaves:
            assert int(receiver.s["mask"].value) == bench.everywhere, "a lane left though half the width carries less"
        else:
            assert not int(receiver.s["mask"].value) >> lane & 1, "a weak lane is still in the mask"
            narrow = min(int(end.s["width"].value) for end in bench.ends)
            interval = bench.options["interval"] * bench.cfg.flit_cycles * bench.cfg.lanes // min(narrow, len(expected))
            await bench.run(
                3 * interval + 3 * bench.options["delay"]
            )  # a marker there, a marker back, what is under way
            before = receiver.corrected
            await bench.run(interval)
            assert receiver.corrected == before, "flits still travel on the weak lane"
        assert [end.refused for end in bench.ends] == refused, "a flit was refused"
        assert receiver.corrected, "no flit was hit"
        bench.flip_lane[e] = -1
        getattr(dut, f"end__{e}__flip").value = 0
        bench.wires(e, lane, 0)
    assert all(end.lost == 0 and not end.why for end in bench.ends), "the link was aligned"
    COVER.hit("weak lane")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def outage(dut: Any) -> None:
    """All lanes dead, one way or both, for a while: the link comes back whole."""
    bench = await begin(dut)
    for ends in ((0,), (1,), (0, 1)):
        for e in ends:
            for lane in range(bench.physical):
                bench.wires(e, lane, NOISE)
        await bench.run(int(bench.rng.integers(10, 300)) * bench.cfg.flit_cycles)
        for e in ends:
            for lane in range(bench.physical):
                bench.wires(e, lane, 0)
        await bench.flow(150)
        await bench.settled()
    COVER.hit("an outage of all lanes")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def one_end_aligns(dut: Any) -> None:
    """An end goes to ALIGN by itself: its partner follows at once, without 64 refused flits."""
    bench = await begin(dut)
    for e in (0, 1):
        end, partner = bench.ends[e], bench.ends[1 - e]
        refused = [x.refused for x in bench.ends]
        partner.why.clear()
        end.align = 1
        end.s["align"].value = 1
        await bench.flow(2)
        await bench.settled()
        assert partner.why == ["realign"]
        assert [x.refused for x in bench.ends] == refused, "a flit was damaged by ALIGN"
        COVER.hit("an end that aligns alone")


@cocotb.test()
async def covered(dut: Any) -> None:
    link = manifest().config
    alone = link.lanes + link.spare_lanes == 1
    COVER.rule_out(alone, *(f"a lane dies: {kind}" for kind in KINDS))
    COVER.rule_out(alone, "one end aligns by 64 refused flits, the other by its markers")
    COVER.rule_out(link.spare_lanes == 0, "the spare takes over")
    COVER.rule_out(link.lanes == 1, "the width halves")
    COVER.require_all()
