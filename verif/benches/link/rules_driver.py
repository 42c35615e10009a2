"""LinkRules in lockstep with the Python rules, and two of them joined; what their bench drives."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from cocotb.triggers import FallingEdge, ReadOnly

from rtl.contract.link import FLIT_HEADER, LinkCause, LinkState
from verif.agents.bench import Bench
from verif.agents.link_channel import LinkChannel
from verif.checks.coverage import Coverage
from verif.golden.link_end import Flit, Inputs, LinkEnd, Outputs
from verif.golden.link_partner import SILENCE, LinkPartner

__all__ = ["COVERAGE", "Link", "RulesBench", "play"]


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
        free = self.get("free")
        expected = {
            "state": mirror.state,
            "up": mirror.state == LinkState.UP,
            "align": mirror.state in (LinkState.DOWN, LinkState.ALIGN),
            "pending": mirror.receiver.pending,
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
            assert self.get(name) == value, f"{name} is {self.get(name)}, not {value}"
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
                class_ = int(self.rng.integers(ours.cfg.classes))
                header = FLIT_HEADER.pack(vc=class_, class_=class_, kind=int(self.rng.integers(2)))
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


async def play(bench: RulesBench, other: LinkEnd, trace: list[str], sends: bool) -> None:
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
