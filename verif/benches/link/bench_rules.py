"""LinkRules against the Python rules, every output in every cycle; and as an end of a link whose data must arrive.

Lockstep: as one end of a link under loss, repeats, restarts and outages; through traces that lead to every state of the
search (at 8 numbers, window 3); with flits that nobody should send. End to end: the RTL's own word counts, only
what is delivered is looked at.
"""

from typing import Any

import cocotb

from rtl.contract.link import CONTROL, DLP, FLIT_HEADER, SEQUENCE_MODULUS, LinkCause, LinkState, Usage
from rtl.contract.link_config import LinkConfig
from rtl.link.rules.credit_sender import STALE_CREDITS
from verif.agents.bench import manifest
from verif.bench import Run, noticed_by
from verif.benches.link.rules_driver import COVERAGE, Link, RulesBench, play
from verif.checks.link_search import Search
from verif.golden.link_end import Flit, Inputs

_SEARCHED = LinkConfig(name="small", sequence_numbers=8, window_flits=3)
"""The numbers of the search."""
_SEEN_END_TO_END = (
    *noticed_by(
        "all_arrives_after_outages",
        "the window is one flit too wide",
        "the epoch is ignored: every gap is a nak",
        "a credit is not returned to the sender",
    ),
    *noticed_by("a_restart_loses_nothing_in_silence", "the session of the partner is not compared"),
)
"""Faults that a link must show in what it delivers or counts, without a look at the Python rules."""

_PLANTED = (
    "the window is one flit too wide",
    "a NOP states the highest number that was ever sent",
    "a nak does not send again",
    "any nak id but the epoch is obeyed at once",
    "the epoch is ignored: every gap is a nak",
    "a flit that was accepted before is accepted again",
    "a NOP ahead of the sequence is no gap",
    "a flit ahead of the sequence is accepted",
    "an update in the cycle of a spend is lost",
    "a repeated old count of credits is believed",
    "a shared count of credits goes to the dedicated account",
    "a credit is not returned to the sender",
    "an arrival in the cycle of a freed slot is not counted",
    "an account is told only when it has changed",
    "slots held through a new session are granted again",
    "progress of a link does not start the time again",
    "the session of the partner is not compared",
    "UP without the echo of the own session",
    "RETRAIN is left as soon as it is entered",
    "a new session has the number of the old one",
    "no ALIGN after refused flits",
    "ALIGN ends in HANDSHAKE although the session is kept",
    "UP before an old flit can have gone by",
    *noticed_by(
        "takes_anything",
        "a flit on a VC that is not its class's is accepted",
        "an acknowledgement of what was never sent is believed",
        "an acknowledgement does not move the position past it",
        "a bad count of credits is believed",
    ),
    *noticed_by(
        "every_state_change_and_count",
        "a wait of the receiver is not seen",
        "a link without progress never gives up",
        "parameters are not compared",
        "a gap once filled stays pending",
        "a flit without room is accepted",
        "there is always room in the receiver",
    ),
)

RUNS = (
    Run("link_rules", config="x8", faults=_PLANTED),
    Run("link_rules", config=_SEARCHED, faults=_SEEN_END_TO_END),
)


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(spread=[False, True], trouble=[0, 1, 2])
async def equals_the_python_rules(dut: Any, spread: bool, trouble: int) -> None:
    """One end of a link, with everything that a link may do to it."""
    bench = RulesBench(dut)
    await bench.begin(int(bench.rng.integers(1 << 16)))
    loss = (0.0, 0.02, 0.15)[trouble]
    delay = int(bench.rng.integers(1, 20))
    repeat = 0.04 if trouble and bench.cfg.sequence_numbers == SEQUENCE_MODULUS else 0
    link = Link(bench, spread, delay=delay, damage=loss, drop=loss / 2, repeat=repeat)
    await link.run(250)
    for _ in range(4 if spread else 8):
        event = int(bench.rng.integers(7))
        cut = link.channels[int(bench.rng.integers(2))]
        match event:
            case 0:
                await link.run(1, restart_rtl=True)
            case 1:
                await link.run(1, restart=True)
            case 2:
                for _ in range(int(bench.rng.integers(1, 40))):
                    await link.step(disable=True)
            case 3:
                await link.run(1, realign=True)
            case 4:
                cut.cut = True
                await link.run(int(bench.rng.integers(10, 200)))
                cut.cut = False
            case 5:
                old, cut.damage = cut.damage, 1.0
                await link.run(int(bench.rng.integers(60, 200)))
                cut.damage = old
            case _:
                for partner in link.partners:
                    partner.stall = True
                await link.run(150)
                for partner in link.partners:
                    partner.stall = False
        await link.run(int(bench.rng.integers(1, 150)))
    await link.run(100)
    await link.drain()
    link.check(lossless=False)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def every_state_change_and_count(dut: Any) -> None:
    """What random events may miss: time-outs, giving up, refused flits in each state, credits that wrap."""
    bench = RulesBench(dut)
    await bench.begin(0xFFFF)
    link = Link(bench, delay=3)
    for state in (LinkState.HANDSHAKE, LinkState.UP, LinkState.RETRAIN):
        for what in ("realign", "refused", "restart_rtl", "disable"):
            for _ in range(3000):
                if bench.state == state:
                    break
                # RETRAIN is passed quickly: the partner asks for it, then falls silent
                if state == LinkState.RETRAIN and bench.state == LinkState.UP:
                    link.partners[1].own.sessions.state = LinkState.RETRAIN
                    link.partners[1].own.sessions.heard = False
                await link.step(restart_rtl=state == LinkState.HANDSHAKE and bench.state == LinkState.UP)
            assert bench.state == state
            if what == "refused":
                link.channels[1].damage = 1.0
                await link.run(80)
                link.channels[1].damage = 0.0
            else:
                await link.run(1, **{what: True})
            await link.run(60)
    await link.run(1200)
    # the partner sends more than there is room for
    link.partners[0].stall = True
    link.partners[1].own.spends.limit = [2000] * bench.cfg.accounts
    for _ in range(400):
        if link.partners[0].counts[LinkCause.CREDIT_OVERRUN]:
            break
        await link.run(10)
    link.partners[0].stall = False
    assert link.partners[0].counts[LinkCause.CREDIT_OVERRUN] == 1
    await link.run(300)
    # the other way is dead: retrain after 1,500 flit times, give up after the fourth
    link.channels[0].cut = True
    await link.run(6300)
    link.channels[0].cut = False
    assert link.partners[0].counts[LinkCause.DOWN] >= 2
    # nothing to send, and gaps that were filled; then one that is not: the partner does not hear the nak
    await link.run(200)
    link.channels[1].damage = 0.2
    await link.run(200)
    link.channels[1].damage = 0.0
    await link.drain()
    link.sending = False
    await link.run(1600)  # the gaps are filled: nobody waits
    partner = link.partners[1].own
    partner.progress.flits = 1 << 30  # it does not mind
    partner.sender.pos = partner.sender.fresh = partner.sender.next = (partner.sender.next + 1) % partner.sender.numbers
    link.channels[0].cut = True
    retrained = link.partners[0].counts[LinkCause.RETRAINED]
    await link.run(1600)
    assert link.partners[0].counts[LinkCause.RETRAINED] == retrained + 1
    link.channels[0].cut = False
    link.sending = True
    await link.run(1, restart=True)
    await link.run(100)
    # nobody hears anybody, and only this end minds
    link.partners[1].own.progress.flits = 1 << 30
    for channel in link.channels:
        channel.cut = True
    retrained = link.partners[0].counts[LinkCause.RETRAINED]
    await link.run(1600)
    assert link.partners[0].counts[LinkCause.RETRAINED] == retrained + 1
    for channel in link.channels:
        channel.cut = False
    await link.run(1, restart=True)
    await link.run(100)
    # parameters that differ
    link.partners[1].own.sessions.parameters["window"] = 99
    await link.run(1, restart=True)
    await link.run(100)
    COVERAGE.when(bench.get("mismatch"), "mismatch")
    assert bench.state == LinkState.HANDSHAKE


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def goes_through_every_state_of_the_search(dut: Any) -> None:
    """The traces of the search at 8 numbers, as sender and as receiver. Other configurations take a few."""
    bench = RulesBench(dut)
    await bench.begin(1)
    small = bench.cfg.sequence_numbers == 8
    traces = Search(8, 3, depth=1).traces()
    for n, trace in enumerate(traces if small else traces[:20]):
        link = Link(bench, delay=1)
        link.sending = False
        await bench.cycle(Inputs(restart=n > 0))
        for _ in range(400):
            if bench.state == LinkState.UP == link.partners[1].state:
                break
            await link.step()
        await play(bench, link.partners[1].own, trace, n % 2 == 0)
        COVERAGE.hit("trace")


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def takes_anything(dut: Any) -> None:
    """Flits that nobody should send, at any time: counted and dropped as the Python rules do."""
    bench = RulesBench(dut)
    await bench.begin(77)
    mirror = bench.mirror
    assert mirror is not None
    rng = bench.rng
    link = Link(bench, delay=2)
    numbers = mirror.sender.numbers
    while bench.state != LinkState.UP:
        await link.step()
    for _ in range(300):
        await bench.cycle(Inputs(enqueue=mirror.room, slot=True))
    for _ in range(2500):
        if bench.state != LinkState.UP:
            await link.step()
            continue
        near = int(rng.integers(-3, 4))
        dlp = {
            "usage": int(rng.choice([0, 1, 1, 1, 2, 3], p=[0.3, 0.3, 0.2, 0.1, 0.09, 0.01])),
            "one": int(rng.random() > 0.01),
            "seq": (mirror.receiver.ack + 1 + near) % numbers if rng.random() < 0.8 else int(rng.integers(1024)),
            "ack": (mirror.sender.acked + int(rng.integers(-2, 5))) % numbers,
            "epoch": (mirror.receiver.nak_id - int(rng.random() < 0.2)) % 4,
            "nak_id": (mirror.sender.epoch + int(rng.choice([0, 0, 0, 0, 1, 2, 3]))) % 4,
            "credit_kind": int(rng.choice([0, 1, 2, 3], p=[0.1, 0.45, 0.44, 0.01])),
            "dedicated": int(rng.integers(2)),
            "vc": int(rng.integers(8)),
        }  # fmt: skip
        if rng.random() < 0.1:
            dlp["ack"] = int(rng.integers(1024))
        kind, own = dlp["credit_kind"], dlp["vc"] * 2 if dlp["dedicated"] else mirror.cfg.queues
        account = min(own + max(kind, 1) - 1, mirror.cfg.accounts - 1)
        dlp["count"] = (
            mirror.spends.limit[account]
            + int(rng.choice([0, 1, 50, 900, 2047, 2500, -1, -200, -300]))
            + int(rng.choice([0, 0, -STALE_CREDITS + int(rng.integers(-20, 20)), int(rng.integers(0, 2048))]))
        ) % 4096
        COVERAGE.when(dlp["count"] < mirror.spends.limit[account], "credit_wraps")
        class_ = int(rng.integers(8))
        head = FLIT_HEADER.pack(
            vc=class_ if rng.random() < 0.8 else int(rng.integers(8)),
            kind=int(rng.integers(2)),
            dedicated=int(rng.integers(2)),
            class_=class_,
            zero=int(rng.random() < 0.02),
        )
        if dlp["usage"] == Usage.CONTROL:
            head = CONTROL.pack(
                mirror.sessions.parameters,
                control_kind=int(rng.choice([1, 2, 2, 3])),
                echo_valid=1,
                heard=int(rng.integers(2)),
                session=(mirror.sessions.partner + int(rng.random() < 0.1)) % (1 << 16),
                echo=(mirror.sessions.session - int(rng.random() < 0.1)) % (1 << 16),
            )
        now = Inputs(
            slot=bool(rng.integers(2)),
            may=bool(rng.random() < 0.9),
            enqueue=bool(mirror.room and rng.random() < 0.6),
            rx=Flit(DLP.pack(dlp), head) if rng.random() < 0.9 else False,
            tick=bool(rng.integers(2)),
        )
        free = [a for a in range(mirror.cfg.accounts) if mirror.free(a)]
        if free and rng.random() < 0.5:
            now.spend = int(rng.choice(free))
        held = [a for a in range(mirror.cfg.accounts) if mirror.grants.held[a]]
        if held and rng.random() < 0.15:
            now.freed = int(rng.choice(held))
        await bench.cycle(now)
    # a nak id that is neither the epoch nor the next one, for long
    for _ in range(400):
        if bench.state == LinkState.UP:
            break
        await link.step()
    late = (mirror.sender.epoch + 2) % 4
    for _ in range(40):
        dlp = DLP.pack(one=1, nak_id=late, ack=mirror.sender.acked, seq=mirror.receiver.ack)
        await bench.cycle(Inputs(rx=Flit(dlp, 0)))


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def all_arrives_after_outages(dut: Any) -> None:
    """Outages longer than the window: everything arrives in order, no session ends, no replay was for nothing."""
    bench = RulesBench(dut)
    await bench.begin(4, lockstep=False)
    link = Link(bench, delay=6)
    await link.run(150)
    for ways in ((0,), (1,), (0, 1), (0,)):
        for way in ways:
            link.channels[way].cut = True
        await link.run(bench.cfg.window_flits + 40)
        for way in ways:
            link.channels[way].cut = False
        await link.run(150)
    for channel in link.channels:
        channel.damage = 0.05
    await link.run(800)
    await link.drain(3000)
    link.check()
    assert link.count(LinkCause.DOWN) == 0, "a session ended"
    assert link.count(LinkCause.SPURIOUS) == 0, "a replay sent again what had been accepted"
    assert all(len(p.received) > 200 for p in link.partners)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def a_restart_loses_nothing_in_silence(dut: Any) -> None:
    """Either end restarts alone at any time."""
    bench = RulesBench(dut)
    await bench.begin(4, lockstep=False)
    link = Link(bench, delay=6)
    for n in range(24):
        await link.run(int(bench.rng.integers(1, 200)))
        await link.run(1, restart_rtl=n % 2 == 0, restart=n % 2 == 1)
    await link.run(200)
    await link.drain(3000)
    link.check(lossless=False)
    assert all(len(p.received) > 200 for p in link.partners)


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=manifest().config.sequence_numbers != SEQUENCE_MODULUS)
async def everything_was_seen(dut: Any) -> None:
    """The coverage of all tests above; a link of few numbers cannot have repeats."""
    COVERAGE.require_all()
