"""The C++ endpoint of the switch's driver at the other end of a port on RTL: the rules of a link, written twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rtl.contract.link_config import LINKS, LinkConfig
from sim.build import build
from sim.native.partner import PARTNER_SOURCES, NativePartner, PartnerCounts

pytestmark = pytest.mark.sim

SMALL = LinkConfig(name="narrow", window_flits=15, sequence_numbers=32, shared_flits=4, classes=3)
"""A window that is full, numbers that wrap and credits that run out, all the time."""


@contextmanager
def partner(cfg: LinkConfig, **settings: Any) -> Iterator[NativePartner]:
    built = build("port_device", cfg, kind="native", options={"form": "native"}, extra_cpp=PARTNER_SOURCES)
    pair = NativePartner(built.binary, cfg, **settings)
    try:
        pair.run(200, sending=False)
        assert pair.up
        yield pair
    finally:
        pair.close()


def drain(pair: NativePartner, flits: int = 20_000) -> PartnerCounts:
    """Until nothing is under way."""
    for _ in range(flits // 500):
        if not any(pair.counts().outstanding):
            break
        pair.run(500, sending=False)
    return pair.counts()


def whole(c: PartnerCounts) -> None:
    """Every packet came once, in its order, unchanged; nothing that only a fault explains."""
    assert c.wrong == (0, 0) and c.outstanding == (0, 0), c
    assert c.delivered == c.sent, c
    assert c.odd == c.overruns == c.unresolved == c.downs == 0, c


@pytest.mark.parametrize("rate", [0.0, 1e-2])
def test_nothing_is_lost_either_way(rate: float) -> None:
    with partner(LINKS["x8"], flit_error_rate=rate, burst_rate=0.02, delay_flits=3, seed=5) as pair:
        pair.run(100_000)
        c = drain(pair)
    whole(c)
    assert min(c.sent) > 10_000 and c.flits > 60_000
    assert c.corrected > 1_000 and c.port_corrected > 1_000
    assert c.spurious == c.port_spurious == c.retrains == 0
    if rate:
        assert min(c.refused, c.port_refused, c.replays, c.port_replays) > 500
    else:  # what is on the wires while one end is not up yet, nothing later
        assert c.resent == c.replays == c.port_replays == 0


def test_narrow_window_few_credits_slow_reader_and_repeats() -> None:
    with partner(SMALL, flit_error_rate=0.05, delay_flits=4, slots_a_flit=0.4, seed=7) as pair:
        pair.run(20_000)
        c = drain(pair)
    whole(c)
    assert c.delivered[1] > 1_000
    with partner(SMALL, repeat_rate=0.05, delay_flits=3, seed=8) as pair:
        pair.run(20_000)
        whole(drain(pair))


def test_an_endpoint_that_begins_again_is_a_new_session() -> None:
    with partner(LINKS["x8"], delay_flits=2, seed=9) as pair:
        pair.run(300)
        before = pair.counts()
        pair.restart()
        pair.run(400, sending=False)
        assert pair.up
        after = pair.counts()
        assert after.downs >= 2 and before.odd == 0
        assert after.odd <= 1  # the unit that the restart cut
        pair.run(2_000)
        later = pair.counts()
    assert min(b - a for a, b in zip(after.delivered, later.delivered, strict=True)) > 500
    assert later.odd == after.odd


def test_the_endpoint_is_fast() -> None:
    """Sixteen of them must not be what a simulated switch waits for: 160,000 flits a second at 20,000 cycles/s."""
    with partner(LINKS["x8"]) as pair:
        assert pair.endpoint_rate() > 400_000
