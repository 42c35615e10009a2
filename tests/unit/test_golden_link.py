"""Rules of the link in Python: a search of all states, and two partners against each other."""

import dataclasses
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from rtl.contract.link import DLP, FLIT_HEADER, LinkCause, LinkState
from rtl.contract.link_config import LINKS, LinkConfig
from verif.agents.link_channel import LinkChannel
from verif.checks.link_search import Search, main
from verif.golden.link_partner import SILENCE, LinkPartner
from verif.golden.link_rules import CreditReceiver, CreditSender, ReplayReceiver, ReplaySender

X8 = LINKS["x8"]
SMALL = dataclasses.replace(X8, name="small", sequence_numbers=8, window_flits=3)


def payload(cfg: LinkConfig, rng: np.random.Generator, who: int, number: int) -> bytes:
    class_ = int(rng.integers(cfg.classes))
    header = FLIT_HEADER.pack(vc=class_, class_=class_, kind=int(rng.integers(2)))
    return header.to_bytes(4, "little") + number.to_bytes(4, "little") + bytes([who])


def numbers(flits: list[bytes], who: int) -> list[int]:
    assert all(f[8] == who for f in flits)
    return [int.from_bytes(f[4:8], "little") for f in flits]


class Pair:
    """Two partners and a channel each way; both send all the time."""

    def __init__(self, cfg: LinkConfig, seed: int, **channel: float):
        self.rng = np.random.default_rng(seed)
        self.ends = [LinkPartner(cfg, 7), LinkPartner(cfg, 90)]
        self.channels = [LinkChannel(self.rng, **channel) for _ in range(2)]  # type: ignore[arg-type]
        self.arriving: list[bytes | None] = [SILENCE, SILENCE]
        self.sent = [0, 0]
        self.limit = 1 << 30

    def step(self, **restart: bool) -> None:
        for n, end in enumerate(self.ends):
            while len(end.waiting) < 3 and self.sent[n] < self.limit:
                end.send(payload(end.cfg, self.rng, n, self.sent[n]))
                self.sent[n] += 1
        flits = [
            end.flit(rx, restart=restart.get("ab"[n], False))
            for n, (end, rx) in enumerate(zip(self.ends, self.arriving))
        ]
        self.arriving = [self.channels[1].pass_on(flits[1]), self.channels[0].pass_on(flits[0])]

    def until(self, what: Callable[[], bool], most: int) -> int:
        for t in range(most):
            if what():
                return t
            self.step()
        raise AssertionError(f"not within {most} flit times: {[e.state.name for e in self.ends]}")

    def drain(self, most: int = 20_000) -> None:
        """Everything sent so far arrives."""
        self.limit = 0
        self.until(lambda: not any(e.waiting or e.own.sender.in_flight for e in self.ends), most)

    def check(self, lossless: bool = True) -> None:
        """Nothing lost, repeated, reordered; with sessions lost: nothing lost in silence."""
        for n in range(2):
            got = numbers(self.ends[1 - n].received, n)
            assert all(a < b for a, b in pairwise(got)), "reordered or duplicated"
            missing = set(range(self.sent[n])) - set(got)
            assert missing <= set(numbers(self.ends[n].unresolved, n)), f"lost in silence: {sorted(missing)[:5]}"
            assert not lossless or not missing

    def count(self, cause: LinkCause) -> int:
        return sum(e.counts[cause] for e in self.ends)


def test_search_finds_nothing_wrong_at_half_the_numbers_less_one() -> None:
    found = Search(8, 3, depth=4).run()
    assert not found.wrong and found.states > 10_000, found


@pytest.mark.parametrize("numbers_", [8, 16])
def test_search_finds_that_half_the_numbers_hang(numbers_: int) -> None:
    found = Search(numbers_, numbers_ // 2, depth=2).run()
    assert "hangs" in found.wrong
    assert found.trace.count("new") == numbers_ // 2, "an outage of a whole window"


def test_search_covers_more_numbers() -> None:
    assert not Search(16, 7, depth=2).run().wrong


def test_search_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--depth", "1"]) == 0
    assert main(["--window", "4", "--depth", "1"]) == 1
    assert "lose forth" in capsys.readouterr().out


@pytest.mark.parametrize("change", ["epoch", "nop", "ack"])
def test_search_finds_broken_rules(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(8, 3, depth=4)
    if change == "epoch":  # every gap naks
        hear = ReplayReceiver.hear
        monkeypatch.setattr(ReplayReceiver, "hear", lambda s, p, q, e, r: hear(s, p, q, s.nak_id, r))
    elif change == "nop":  # a NOP states the highest number
        monkeypatch.setattr(
            Search,
            "send",
            lambda s, state, may: (
                state._replace(forth=(*state.forth, (False, state.fresh - 1, state.epoch)))
                if not may
                else SEND(s, state, may)
            ),
        )
    else:  # an acknowledgement of anything is believed
        hear_back = Search.hear_back
        monkeypatch.setattr(Search, "hear_back", lambda s, state: hear_back(s, state._replace(back=((1, 0),))))
    assert search.run().wrong


SEND = Search.send


@pytest.mark.parametrize("cfg", [X8, SMALL], ids=lambda c: c.name)
@pytest.mark.parametrize("loss", [0, 0.01, 0.2])
@pytest.mark.parametrize("delay", [1, 9, 40])
def test_nothing_is_lost_repeated_or_reordered(cfg: LinkConfig, loss: float, delay: int) -> None:
    pair = Pair(cfg, seed=delay, delay=delay, damage=loss / 2, drop=loss / 2)
    for _ in range(1500):
        pair.step()
    pair.drain()
    pair.check()
    assert all(len(e.received) > 10 for e in pair.ends)
    for cause in (LinkCause.SPURIOUS, LinkCause.DUPLICATE, LinkCause.BAD_ACK, LinkCause.BAD_CREDIT, LinkCause.DOWN):
        assert pair.count(cause) == 0, cause.name
    assert pair.count(LinkCause.RETRAINED) == 0
    assert pair.count(LinkCause.GAP) == pair.count(LinkCause.REPLAY)


@pytest.mark.parametrize("delay", [9, 40])
def test_repeats_are_dropped(delay: int) -> None:
    pair = Pair(X8, seed=3, delay=delay, damage=0.01, drop=0.01, repeat=0.1)
    for _ in range(4000):
        pair.step()
    pair.drain()
    pair.check()
    assert pair.count(LinkCause.DUPLICATE) > 20
    assert pair.count(LinkCause.DOWN) == pair.count(LinkCause.BAD_ACK) == pair.count(LinkCause.BAD_CREDIT) == 0


@pytest.mark.parametrize("cfg", [X8, SMALL], ids=lambda c: c.name)
@pytest.mark.parametrize("ways", [(0,), (0, 1)])
def test_an_outage_longer_than_the_window(cfg: LinkConfig, ways: tuple[int, ...]) -> None:
    pair = Pair(cfg, seed=5, delay=6)
    for start in (60, 61, 62, 63, 300):
        for _ in range(start):
            pair.step()
        for n in ways:
            pair.channels[n].cut = True
        for _ in range(cfg.window_flits + 30):
            pair.step()
        for n in ways:
            pair.channels[n].cut = False
    pair.drain(3000)
    pair.check()
    assert pair.count(LinkCause.DOWN) == pair.count(LinkCause.SPURIOUS) == 0


@pytest.mark.parametrize("after", [0, 1, 2, 5, 40, 43, 44, 50, 77, 200, 700, 1500])
@pytest.mark.parametrize("who", ["a", "b"])
def test_a_restart_of_one_end_loses_nothing_in_silence(after: int, who: str) -> None:
    pair = Pair(X8, seed=after, delay=7, damage=0.01, repeat=0.02)
    for _ in range(after):
        pair.step()
    pair.step(**{who: True})
    pair.until(lambda: any(e.state != LinkState.UP for e in pair.ends), 50)
    pair.until(lambda: all(e.state == LinkState.UP for e in pair.ends), 300)
    before = [len(e.received) for e in pair.ends]
    for _ in range(300):
        pair.step()
    assert all(len(e.received) > n for e, n in zip(pair.ends, before))
    pair.drain()
    pair.check(lossless=False)


def test_restarts_all_the_time() -> None:
    pair = Pair(X8, seed=9, delay=12, damage=0.02, drop=0.01, repeat=0.05)
    for _ in range(12_000):
        pair.step(a=pair.rng.random() < 0.003, b=pair.rng.random() < 0.003)
    pair.drain()
    pair.check(lossless=False)
    assert pair.count(LinkCause.UNRESOLVED) == sum(len(e.unresolved) for e in pair.ends) > 0


def test_a_dead_link_goes_down_and_says_what_is_not_known_to_be_delivered() -> None:
    pair = Pair(X8, seed=1, delay=5)
    for _ in range(100):
        pair.step()
    for channel in pair.channels:
        channel.damage = 1.0
    pair.until(lambda: pair.count(LinkCause.DOWN) >= 2, 4 * 1500 + 200)
    for channel in pair.channels:
        channel.damage = 0
    pair.drain()
    pair.check(lossless=False)


def test_a_slow_receiver_holds_the_sender() -> None:
    pair = Pair(X8, seed=2, delay=5)
    pair.ends[1].stall = True
    for _ in range(600):
        pair.step()
    held = len(pair.ends[1].held)
    assert 0 < held <= X8.pool_flits
    assert pair.count(LinkCause.CREDIT_OVERRUN) == 0
    # A new session grants only what is free; nothing held is lost.
    pair.step(a=True)
    for _ in range(300):
        pair.step()
    assert len(pair.ends[1].held) <= X8.pool_flits
    pair.ends[1].stall = False
    pair.drain()
    pair.check(lossless=False)
    assert pair.count(LinkCause.CREDIT_OVERRUN) == 0


def test_different_parameters_never_come_up() -> None:
    pair = Pair(X8, seed=2, delay=5)
    pair.ends[1] = LinkPartner(dataclasses.replace(X8, window_flits=64), 90)
    for _ in range(400):
        pair.step()
    assert [e.state for e in pair.ends] == [LinkState.HANDSHAKE] * 2
    assert pair.ends[0].own.sessions.mismatch
    assert not pair.ends[0].received


def test_abuse_is_counted_and_does_not_hang() -> None:
    pair = Pair(X8, seed=4, delay=3)
    pair.until(lambda: all(e.received for e in pair.ends), 300)

    def forged(**change: int) -> None:
        sent = pair.ends[1].flit(pair.arriving[1])
        dlp = DLP.unpack(int.from_bytes(sent[236:], "big")) | change
        pair.ends[0].flit(sent[:236] + DLP.pack(dlp).to_bytes(6, "big"))

    acked = pair.ends[0].own.sender.acked
    forged(ack=(acked + 300) % 1024)
    forged(count=2900, credit_kind=1)
    forged(one=0)
    forged(usage=3)
    forged(credit_kind=3)
    counts = pair.ends[0].counts
    assert counts[LinkCause.BAD_ACK] == 1
    assert counts[LinkCause.BAD_CREDIT] == 1
    assert counts[LinkCause.MALFORMED] == 3
    pair.drain()
    pair.check()


def test_a_flit_without_room_takes_the_link_down() -> None:
    pair = Pair(X8, seed=4, delay=3)
    pair.ends[1].stall = True
    pair.until(lambda: len(pair.ends[1].held) > 20, 300)
    pair.ends[0].own.spends.limit = [2000] * X8.accounts
    pair.until(lambda: pair.ends[1].counts[LinkCause.CREDIT_OVERRUN] == 1, 300)
    assert pair.ends[1].state == LinkState.DOWN
    pair.ends[1].stall = False
    pair.drain()
    pair.check(lossless=False)


def test_all_counts_are_told() -> None:
    grants, spends = CreditReceiver(X8), CreditSender(X8)
    for _ in range(X8.accounts):
        assert spends.hear(*grants.told())
        grants.next_turn()
    assert [spends.free(a) for a in range(X8.accounts)] == grants.size
    # One account that always changes does not keep the others from being told.
    told = set[int]()
    for _ in range(2 * X8.accounts):
        told.add(grants.turn)
        grants.arrive(3)
        grants.freed(3)
        grants.next_turn()
    assert told == set(range(X8.accounts))


def test_an_epoch_that_went_wrong_comes_right() -> None:
    sender = ReplaySender(1024, 128)
    sender.epoch = 3
    for n in range(33):
        assert ("replay" in sender.hear(0, 2)) == (n == 32)
    assert sender.epoch == 2
