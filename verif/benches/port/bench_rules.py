"""LinkRules against the Python rules, every output in every cycle; and as an end of a link whose data must arrive.

Lockstep: as one end of a link under loss, repeats, restarts and outages; through traces that lead to every state of the
search (at 8 numbers, window 3); with flits that nobody should send. End to end: the RTL's own word counts, only
what is delivered is looked at.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from rtl.contract.link import CONTROL, DLP, FLIT_HEADER, SEQUENCE_MODULUS, LinkCause, LinkState, Usage
from verif.agents.bench import Bench, manifest
from verif.agents.link_channel import LinkChannel
from verif.checks.coverage import Coverage
from verif.checks.link_search import Search
from verif.golden.link_end import Flit, Inputs, LinkEnd, Outputs
from verif.golden.link_partner import SILENCE, LinkPartner

CAUSES = [c for c in LinkCause if c not in (LinkCause.BAD_UNIT, LinkCause.BAD_PACKET, LinkCause.FOREIGN)]
COVERAGE = Coverage(
    "link rules",
    [
        *(c.name.lower() for c in CAUSES if c not in (LinkCause.CORRECTED,)),
        *(f"{a.name}_{b.name}".lower() for a, b in [
            (LinkState.ALIGN, LinkState.HANDSHAKE), (LinkState.ALIGN, LinkState.RETRAIN),
            (LinkState.HANDSHAKE, LinkState.UP), (LinkState.HANDSHAKE, LinkState.ALIGN),
            (LinkState.UP, LinkState.RETRAIN), (LinkState.UP, LinkState.ALIGN), (LinkState.UP, LinkState.DOWN),
            (LinkState.UP, LinkState.DISABLED), (LinkState.RETRAIN, LinkState.UP),
            (LinkState.RETRAIN, LinkState.ALIGN), (LinkState.RETRAIN, LinkState.DOWN),
            (LinkState.DISABLED, LinkState.DOWN),
        ]),
        "window_full", "replay_in_replay", "number_wraps", "credit_wraps", "no_credit", "slot_and_flit",
        "trace", "mismatch", "late_nak_id",
    ],
)  # fmt: skip
TEXTS = {cause: cause.name.lower() for cause in CAUSES}


class RulesBench(Bench):
    """The inputs and outputs of LinkRules as the Python rules have them. `mirror`: compared in every cycle, if any.

    It is an End of LinkPartner, too.
    """

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.mirror: LinkEnd | None = None
        self.last: dict[str, int] = {}
        self.before = LinkState.DOWN

    async def begin(self, session_init: int, lockstep: bool = True) -> None:
        """Reset; the link is DOWN after it."""
        flags = ("tick", "disabled", "restart", "realign", "aligned", "rx_valid", "rx_good", "slot", "may", "enqueue")
        for name in (*flags, "rx_dlp", "rx_head", "freed", "freed_account", "spend", "spend_account"):
            self.put(name, 0)
        self.dut.session_init.value = session_init
        await self.start()
        if lockstep:
            self.mirror = LinkEnd(self.cfg, session_init)
        await FallingEdge(self.clk)

    def put(self, name: str, value: int) -> None:
        """Drive an input if it changes."""
        if self.last.get(name) != value:
            self.last[name] = value
            getattr(self.dut, name).value = value

    def get(self, name: str) -> int:
        """An output now."""
        return int(getattr(self.dut, name).value)

    @property
    def state(self) -> int:
        """LinkState."""
        return self.get("state")

    @property
    def room(self) -> bool:
        """A flit may enter the retry buffer."""
        return bool(self.get("room"))

    @property
    def put_index(self) -> int:
        """Slot of the retry buffer for it."""
        return self.get("put_index")

    def free(self, account: int) -> int:
        """Credits to spend."""
        return self.get("free") >> 12 * account & 0xFFF

    async def cycle(self, now: Inputs) -> Outputs:
        """One cycle: inputs after the falling edge, outputs before the rising one."""
        good = isinstance(now.rx, Flit)
        for name in ("slot", "may", "enqueue", "tick", "aligned", "realign", "restart"):
            self.put(name, int(getattr(now, name)))
        self.put("disabled", int(now.disable))
        self.put("rx_valid", int(now.rx is not None))
        self.put("rx_good", int(good))
        if isinstance(now.rx, Flit):
            self.put("rx_dlp", now.rx.dlp)
            self.put("rx_head", now.rx.head)
        self.put("spend", int(now.spend is not None))
        self.put("spend_account", now.spend or 0)
        self.put("freed", int(now.freed is not None))
        self.put("freed_account", now.freed or 0)
        await ReadOnly()
        bits = self.get("causes")
        out = Outputs(
            payload=bool(self.get("tx_payload")),
            control=bool(self.get("tx_control")),
            index=self.get("tx_index"),
            dlp=self.get("tx_dlp"),
            head=self.get("tx_head"),
            deliver=bool(self.get("deliver")),
            account=self.get("rx_account") if self.get("deliver") else 0,
            causes={c for c in LinkCause if bits >> c & 1},
            clear=bool(self.get("clear")),
            unresolved=self.get("unresolved"),
        )
        if self.mirror is not None:
            self._compare(self.mirror, now, out)
        self._cover(now, out)
        await FallingEdge(self.clk)
        return out

    def _compare(self, mirror: LinkEnd, now: Inputs, out: Outputs) -> None:
        seen = {n: self.get(n) for n in ("state", "session", "in_flight", "room", "put_index", "mismatch", "partner")}
        free = self.get("free")
        expected = {
            "state": mirror.state,
            "session": mirror.sessions.session,
            "in_flight": mirror.sender.in_flight,
            "room": mirror.room,
            "put_index": mirror.put_index,
            "mismatch": mirror.sessions.mismatch,
            "partner": mirror.sessions.partner,
        }
        for account in range(self.cfg.accounts):
            assert free >> 12 * account & 0xFFF == mirror.free(account), f"free of account {account}"
        for name, value in expected.items():
            assert seen[name] == value, f"{name} is {seen[name]}, not {value}"
        unlike = mirror.sender.unlike
        COVERAGE.when(mirror.sender.in_flight == self.cfg.window_flits, "window_full")
        replaying = mirror.sender.pos != mirror.sender.fresh
        wanted = mirror.cycle(now)
        COVERAGE.when(replaying and LinkCause.REPLAY in out.causes, "replay_in_replay")
        COVERAGE.when(unlike == 32 and LinkCause.REPLAY in out.causes, "late_nak_id")
        COVERAGE.when(mirror.sender.next == 0, "number_wraps")
        assert out == wanted, f"{out}\nnot {wanted}"

    def _cover(self, now: Inputs, out: Outputs) -> None:
        state = LinkState(self.state)
        if state != self.before:
            name = f"{self.before.name}_{state.name}".lower()
            COVERAGE.when(name in COVERAGE.hits, name)
            self.before = state
        for cause in out.causes:
            COVERAGE.hit(TEXTS[cause])
        COVERAGE.when(out.unresolved, "unresolved")
        COVERAGE.when(now.slot and now.rx is not None, "slot_and_flit")


class Link:
    """The RTL and a Python partner, a channel each way, both with payload to send; a flit time is 1 to 4 cycles."""

    def __init__(self, bench: RulesBench, spread: bool = False, **channel: float):
        cfg = bench.cfg
        self.bench = bench
        self.rng = bench.rng
        self.spread = spread
        self.partners = [LinkPartner(cfg, end=bench), LinkPartner(cfg, 500)]
        self.channels = [LinkChannel(bench.rng, **channel) for _ in range(2)]  # type: ignore[arg-type]
        self.arriving: list[bytes | None] = [SILENCE, SILENCE]
        self.sent = [0, 0]
        self.sending = True

    async def step(
        self, *, restart_rtl: bool = False, restart: bool = False, disable: bool = False, **more: bool
    ) -> None:
        """A flit time."""
        ours, theirs = self.partners
        for n, partner in enumerate(self.partners):
            while self.sending and len(partner.waiting) < 3:
                header = FLIT_HEADER.pack(vc=int(self.rng.integers(ours.cfg.classes)), kind=int(self.rng.integers(2)))
                partner.send(header.to_bytes(4, "little") + self.sent[n].to_bytes(4, "little"))
                self.sent[n] += 1
        rx = self.arriving[0]
        now = ours.prepare(rx)
        now.restart, now.disable = restart_rtl, disable
        now.realign = more.get("realign", False)
        COVERAGE.when(bool(ours.waiting) and self.bench.room and not now.enqueue, "no_credit")
        out = await self._cycles(now)
        sent = ours.finish(now, out, rx)
        answer = theirs.flit(self.arriving[1], restart=restart)
        self.arriving = [self.channels[1].pass_on(answer), self.channels[0].pass_on(sent)]

    async def _cycles(self, now: Inputs) -> Outputs:
        """All in a cycle, or each thing in a cycle of its own, in some order."""
        if not self.spread:
            return await self.bench.cycle(now)
        parts = [replace(Inputs(), slot=now.slot, enqueue=now.enqueue, spend=now.spend, disable=now.disable)]
        parts += [Inputs(disable=now.disable) for _ in range(int(self.rng.integers(1, 4)))]

        def some() -> Inputs:
            return parts[int(self.rng.integers(len(parts)))]

        some().rx, some().freed, some().tick = now.rx, now.freed, now.tick
        some().restart, some().realign, some().aligned = now.restart, now.realign, now.aligned
        outs = [await self.bench.cycle(part) for part in parts]
        whole = outs[0]
        for out in outs[1:]:
            if out.deliver:
                whole.deliver, whole.account = True, out.account
            whole.causes |= out.causes
            whole.clear |= out.clear
            whole.unresolved += out.unresolved
        return whole

    async def run(self, flits: int, **events: bool) -> None:
        """Some flit times; `events` in the first one."""
        for t in range(flits):
            await self.step(**(events if t == 0 else {}))

    async def drain(self, most: int = 6000) -> None:
        """What waits arrives, and is known to have arrived."""
        self.sending = False
        ours, theirs = self.partners
        for _ in range(most):
            if not (ours.waiting or theirs.waiting or theirs.own.sender.in_flight or self.bench.get("in_flight")):
                break
            await self.step()
        else:
            raise AssertionError(f"not everything arrives: {ours.state.name}, {theirs.state.name}")
        self.sending = True

    def check(self, lossless: bool = True) -> None:
        """Nothing lost, repeated, reordered; when sessions ended, nothing lost in silence."""
        for n in range(2):
            got, unresolved = (
                [int.from_bytes(f[4:8], "little") for f in flits]
                for flits in (self.partners[1 - n].received, self.partners[n].unresolved)
            )
            assert all(a < b for a, b in pairwise(got)), f"reordered or duplicated: {got[-20:]}"
            waiting = len(self.partners[n].waiting)
            missing = set(range(self.sent[n] - waiting)) - set(got)
            assert missing <= set(unresolved), f"lost in silence: {sorted(missing)[:9]}"
            assert not (lossless and missing), f"lost: {sorted(missing)[:9]}"

    def count(self, cause: LinkCause) -> int:
        """Both ends' counts together."""
        return sum(p.counts[cause] for p in self.partners)


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
    await link.run(500)
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
        await _play(bench, link.partners[1].own, trace, n % 2 == 0)
        COVERAGE.hit("trace")


async def _play(bench: RulesBench, other: LinkEnd, trace: list[str], sends: bool) -> None:
    """A trace of the search: `sends`: the RTL is the sender, else the receiver; `other` the opposite end."""
    mirror = bench.mirror
    assert mirror is not None
    forth: list[Outputs] = []
    back: list[Outputs] = []

    async def act(ours: bool, now: Inputs) -> Outputs:
        return await bench.cycle(now) if ours else other.cycle(now)

    for event in trace:
        match event:
            case "new":
                await act(sends, Inputs(enqueue=True))
            case "send" | "send control":
                forth.append(await act(sends, Inputs(slot=True, may=event == "send")))
            case "answer":
                back.append(await act(not sends, Inputs(slot=True)))
            case "lose forth":
                forth.pop(0)
            case "lose back":
                back.pop(0)
            case "hear forth":
                out = forth.pop(0)
                head = FLIT_HEADER.pack(dedicated=0) if out.payload else out.head if out.control else 0
                took = await act(not sends, Inputs(rx=Flit(out.dlp, head)))
                if took.deliver:
                    await act(not sends, Inputs(freed=took.account))
            case _:
                out = back.pop(0)
                await act(sends, Inputs(rx=Flit(out.dlp, out.head if out.control else 0)))


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
            mirror.spends.limit[account] + int(rng.choice([0, 1, 50, 900, 2047, 2500, -1, -200, -300]))
        ) % 4096
        COVERAGE.when(dlp["count"] < mirror.spends.limit[account], "credit_wraps")
        head = FLIT_HEADER.pack(
            vc=int(rng.integers(8)),
            kind=int(rng.integers(2)),
            dedicated=int(rng.integers(2)),
            class_=int(rng.integers(8)),
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


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def everything_was_seen(dut: Any) -> None:
    """The coverage of all tests above; a link of few numbers cannot have repeats."""
    COVERAGE.write()
    if manifest().config.sequence_numbers == SEQUENCE_MODULUS:
        COVERAGE.require_all()
