"""LaneReceiver against the golden writer: every flit once and in order, maps followed, bad lanes named."""

from dataclasses import replace
from typing import Any

import cocotb

from rtl.contract.lanes import ALIGN_MARKERS, WEAK_RATIO
from rtl.contract.link_config import LINKS, LinkConfig
from verif.agents.bench import manifest
from verif.agents.stall import STYLES
from verif.bench import Run, noticed_by
from verif.benches.link.lane_receiver_driver import (
    COVER,
    ReceiverBench,
    fix,
    fixes,
    interval,
    some_mask,
    until,
)
from verif.golden.lanes import LaneWriter, lane_map


def _link(name: str, spares: int) -> LinkConfig:
    """A link whose lanes are called weak soon, as in bench_lane_trust."""
    return replace(LINKS[name], spare_lanes=spares, weak_corrections=8)


_ENDS = {"interval": 6}

_PLANTED = (
    "markers between flits do not change the map",
    "the scrambler of the receiver does not start again at a marker",
    *noticed_by(
        "lets_the_narrower_width_carry_more",
        "a lane is weak by its corrections alone, whatever the others have",
        "a lane leaves without a spare though the narrower width carries less",
        "a lane stays without a spare though the narrower width carries more",
    ),
    *noticed_by("names_weak_lanes", "a weak lane is not noticed"),
    *noticed_by("goes_on_without_a_marker", "a marker that is missing on all lanes counts as a word of a flit"),
    *noticed_by("believes_no_old_map", "the version of the map is not compared"),
    *noticed_by("names_dead_lanes", "a dead lane is not noticed"),
)

RUNS = (
    Run("lane_receiver", config=_link("x1", 0), options=_ENDS, regress=True),
    Run("lane_receiver", config=_link("x8", 2), options=_ENDS, faults=_PLANTED),
    Run("lane_receiver", config=_link("x16", 0), options=_ENDS, regress=True),
)


@cocotb.test(timeout_time=3000, timeout_unit="us")
@cocotb.parametrize(style=STYLES)
async def follows_the_map(dut, style: str) -> None:
    """Maps of random masks, with markers between flits and back to back; one lane misses a marker now and then."""
    bench = ReceiverBench(dut, style)
    await bench.begin()
    await bench.drained()
    bench.count()
    for _ in range(10):
        bench.flits(bench.interval)
        if bench.rng.random() < 0.7:
            bench.writer.obey(some_mask(bench))
            COVER.hit("map changes between flits")
        bench.marker(hide=0, mask=some_mask(bench))
        bench.flits(bench.interval)
        alone = 1 << int(bench.rng.integers(bench.physical))
        bench.marker(hide=alone)
        COVER.when(alone != bench.everywhere, "a marker missing on a lane is forgiven")
        if bench.rng.random() < 0.3:
            bench.flits(int(bench.rng.integers(bench.interval)))
            bench.marker(more=1, count=6)
            bench.unforeseen += 1  # the first of them
            bench.writer.obey(some_mask(bench))
            bench.marker(more=1, count=ALIGN_MARKERS)
            bench.marker(mask=9 & bench.everywhere)
            COVER.hit("map changes back to back")
        await bench.drained()
        bench.same()
        assert bench.value("width") == len(bench.writer.map)
        assert bench.value("version") == bench.writer.version
    mask = some_mask(bench)
    bench.flits(bench.interval)
    bench.marker(mask=mask)
    await bench.drained()
    assert bench.value("partner_mask") == mask
    bench.check_counts()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def carries_any_logical_lane_where_it_may(dut) -> None:
    """Each logical lane on each physical one that a mask can put it on."""
    bench = ReceiverBench(dut)
    await bench.begin()
    for place in range(bench.physical):
        above = bench.everywhere & ~((2 << place) - 1)
        for logical in range(min(place + 1, bench.cfg.lanes)):
            mask = above | 1 << place | sum(1 << int(p) for p in bench.rng.permutation(place)[:logical])
            if lane_map(mask, bench.cfg.lanes, bench.physical)[logical:][:1] != [place]:
                continue  # the width is narrower
            bench.flits(bench.interval)
            bench.writer.obey(mask)
            bench.marker()
            await bench.drained()
    bench.flits(bench.interval)
    await bench.drained()
    bench.same()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def goes_on_without_a_marker(dut) -> None:
    """Noise instead of one marker on all lanes: borders, map and scrambler go on. Twice in a row: lost."""
    bench = ReceiverBench(dut)
    await bench.begin()
    for _ in range(3):
        bench.flits(bench.interval)
        bench.marker(hide=bench.everywhere)
        bench.flits(bench.interval)
        bench.marker()
    await bench.drained()
    bench.same()
    COVER.hit("a marker missing on all lanes is forgiven")
    bench.flits(bench.interval)
    bench.marker(hide=bench.everywhere)
    bench.flits(bench.interval)
    bench.marker(hide=bench.everywhere)
    bench.flits(1)
    seen = False
    while bench.words:
        await bench.edge
        seen |= bench.value("realign") == 1
    assert seen, "markers were lost and nothing asks for ALIGN"
    COVER.hit("markers lost")


@cocotb.test(timeout_time=1000, timeout_unit="us", skip=manifest().config.lanes < 4)
async def believes_no_old_map(dut) -> None:
    """A lane that shows its marker of an older map, good in itself, is left out."""
    bench = ReceiverBench(dut)
    await bench.begin()
    spare = lane_map(0, bench.cfg.lanes, bench.physical)[2]  # the lane that leaves the map
    for _ in range(4):
        bench.flits(bench.interval)
        bench.writer.obey(bench.everywhere)
        bench.marker()
        bench.flits(bench.interval)
        old = LaneWriter(bench.cfg.lanes, bench.physical)
        old.version, old.toggle = bench.writer.version, bench.writer.toggle
        bench.writer.obey(bench.everywhere & ~(1 << spare))
        words = bench.writer.marker()[0].tolist()
        words[spare] = int(old.marker()[0][spare])
        bench.words.append(words)
    bench.flits(2)
    await bench.drained()
    bench.same()
    COVER.hit("a lane with an old map is not believed")


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def names_dead_lanes(dut) -> None:
    """Two markers of the last four missing: dead, until markers come back to back."""
    bench = ReceiverBench(dut)
    await bench.begin()
    if bench.physical > 1:
        dead = 1 << bench.physical - 1
        for miss in (1, 0, 0, 0, 1, 0, 1):  # the first two are more than four markers apart
            assert bench.value("dead_lanes") == 0
            bench.flits(bench.interval)
            bench.marker(hide=dead * miss)
            await bench.drained()
        assert bench.value("dead_lanes") == dead, "two of four markers were missing"
        assert bench.value("mask") == bench.everywhere & ~dead
        bench.marker(more=1, count=ALIGN_MARKERS + 4)
        bench.marker()
        await bench.drained()
        assert bench.value("mask") == bench.everywhere, "the lane is back and still out"
    COVER.hit("a dead lane is named")


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def names_weak_lanes(dut) -> None:
    """Corrections of a marker interval count by lane; a lane at the threshold leaves the mask if a spare is left."""
    bench = ReceiverBench(dut)
    await bench.begin()
    await bench.drained()
    limit, lanes = bench.cfg.weak_corrections, bench.cfg.lanes
    logical = int(bench.rng.integers(lanes))
    lane = lane_map(0, lanes, bench.physical)[logical]
    await fixes(bench, logical, limit - 1)
    await interval(bench)
    assert bench.value("weak_lanes") == 0, "one correction below the threshold"
    await fixes(bench, logical, 1)
    await interval(bench)
    assert bench.value("weak_lanes") == 0, "corrections of two marker intervals were added up"
    await fixes(bench, logical, limit)
    await interval(bench)
    replaced = bench.physical > lanes
    assert bench.value("weak_lanes") == replaced << lane
    assert bench.value("mask") == bench.everywhere & ~(replaced << lane)
    total = bench.value("corrections") >> 16 * lane & 0xFFFF
    assert total == 2 * limit, f"{total} corrections counted, {2 * limit} made"
    assert bench.value("corrections") == total << 16 * lane, "corrections of a lane that had none"
    COVER.hit("a weak lane is named")
    bench.dut.clear.value = 1
    await bench.edge
    bench.dut.clear.value = 0
    await bench.cycles(3)
    assert bench.value("weak_lanes") == 0 and bench.value("mask") == bench.everywhere
    COVER.hit("a weak lane comes back with a session")


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def lets_the_narrower_width_carry_more(dut) -> None:
    """Without a spare a lane leaves if most flits are lost, and one that is no worse than the others never."""
    bench = ReceiverBench(dut)
    await bench.begin()
    await bench.drained()
    limit, lanes = bench.cfg.weak_corrections, bench.cfg.lanes
    ratio = WEAK_RATIO
    for logical in range(lanes):  # all alike; the others have a little more than their share of the worst
        await fixes(bench, logical, ratio * limit if logical == lanes - 1 else limit + 1)
    await interval(bench)
    assert bench.value("weak_lanes") == 0 or lanes == 1, "a lane left that does not stand apart"
    COVER.hit("lanes that are equally bad stay")
    if lanes > 1:
        bench.dut.clear.value = 1
        await bench.edge
        bench.dut.clear.value = 0
        weak = 0
        for out in range(bench.physical - lanes):  # one spare after the other takes over
            await fixes(bench, 0, limit)
            bench.flits(bench.interval)
            weak |= 1 << lane_map(bench.everywhere & ~weak, lanes, bench.physical)[0]
            bench.writer.obey(bench.everywhere & ~weak)
            bench.marker()
            await bench.drained()
            assert bench.value("weak_lanes") == weak, f"spare {out} did not take over"
        rest = lane_map(bench.everywhere & ~weak, lanes, bench.physical)
        await fixes(bench, 1, 3 * limit)
        for _ in range(3 * limit):  # more than half of the flits are good
            await fix(bench)
        await fixes(bench, 1, 3, lost=True)
        await interval(bench)
        assert bench.value("weak_lanes") == weak, "a lane left though the narrower width carries less"
        COVER.hit("few flits are lost: a lane stays without a spare")
        await fixes(bench, 1, limit, lost=True)
        for n in range(600):  # a little more than half of many are lost
            await fix(bench, lost=n < 310)
        await interval(bench)
        assert bench.value("weak_lanes") == weak | 1 << rest[1], "a lane stayed though half the width carries more"
        assert bench.value("mask") == bench.everywhere & ~(weak | 1 << rest[1])
    else:
        COVER.hit("few flits are lost: a lane stays without a spare")
    COVER.hit("most flits are lost: a lane leaves without a spare")


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def aligns(dut) -> None:
    """When an end may leave ALIGN, and when it must go there."""
    bench = ReceiverBench(dut)
    d: Any = bench.dut
    await bench.begin()
    bench.flits(2)
    await bench.drained()
    # The partner goes to ALIGN.
    bench.marker(more=1, count=8)
    assert await until(bench, "realign", 12) <= 12, "markers back to back after flits are a call"
    COVER.hit("called")
    d.align.value = 1
    bench.marker(more=1, count=3 * ALIGN_MARKERS)
    await bench.drained()
    assert bench.value("locked") == 1 and bench.value("aligned") == 0, "the partner has not said that it hears"
    bench.writer.obey(bench.everywhere & ~1 if bench.physical > 1 else bench.everywhere)
    bench.marker(more=1, here=1, count=3 * ALIGN_MARKERS)
    await bench.drained()
    assert (bench.value("aligned") == 1) == (bench.physical == 1), "the map is not that of the mask"
    bench.writer.obey(bench.everywhere)
    bench.marker(more=1, here=1, count=ALIGN_MARKERS + 8)
    await bench.drained()
    assert bench.value("aligned") == 1
    COVER.hit("aligned")
    d.align.value = 0
    # The partner does not notice and sends markers for ever.
    for _ in range(512 * bench.cfg.flit_cycles - 64):
        if not bench.words:
            bench.marker(more=1, here=1)
        assert bench.value("realign") == 0
        await bench.edge
    for _ in range(80):
        if not bench.words:
            bench.marker(more=1, here=1)
        await bench.edge
    assert bench.value("realign") == 1
    COVER.hit("unanswered")
    # The partner follows late, but before that: nothing is wrong.
    d.align.value = 1
    await bench.cycles(2)
    d.align.value = 0
    for _ in range(500 * bench.cfg.flit_cycles):
        if not bench.words:
            bench.marker(more=1, here=1)
        await bench.edge
    bench.marker()
    for _ in range(4 * bench.cfg.flit_cycles):
        assert bench.value("realign") == 0, "the wait for the partner counts as silence"
        await bench.edge
    bench.flits(1)
    await bench.drained()
    assert bench.value("realign") == 0
    assert await until(bench, "realign", 64 * bench.cfg.flit_cycles + 16) > 32, "one beat was enough"
    assert bench.value("realign") == 1
    COVER.hit("quiet")
    # An end that goes to ALIGN while flits flow does not believe what it heard before.
    bench.flits(2)
    await bench.drained()
    d.align.value = 1
    await bench.cycles(ALIGN_MARKERS * 3)
    bench.flits(2)
    await bench.drained()
    assert bench.value("aligned") == 0


@cocotb.test()
async def covered(dut) -> None:
    link = manifest().config
    COVER.rule_out(link.lanes < 4, "a lane with an old map is not believed")
    COVER.rule_out(link.lanes + link.spare_lanes == 1, "a marker missing on a lane is forgiven")
    COVER.require_all()
