"""LinkConfig: the receive pool covers the window, and what makes no sense is refused in a sentence."""

import dataclasses

import pytest

from rtl.contract.config_sections import ConfigError
from rtl.contract.link import CREDIT_MODULUS, DEDICATED_FLITS, CreditKind
from rtl.contract.link_config import COVERS_WINDOW, LINKS, LinkConfig
from sim.link import link_config
from sim.systems.link.model import line_share
from verif.golden.link_rules import CreditReceiver, CreditSender


@pytest.mark.parametrize("name", LINKS)
def test_a_pool_covers_its_window(name: str) -> None:
    cfg = LINKS[name]
    assert cfg.reach_flits == DEDICATED_FLITS + cfg.shared_flits == cfg.window_flits + 16
    assert cfg.pool_flits == cfg.queues * DEDICATED_FLITS + 2 * cfg.shared_flits
    assert LinkConfig(window_flits=511).shared_flits == 523


def test_another_window_has_another_pool() -> None:
    assert link_config({"window_flits": 15}).shared_flits == 27
    assert link_config({"window_flits": 15, "shared_flits": 3}).shared_flits == 3
    assert dataclasses.replace(LINKS["x8"], window_flits=15, shared_flits=COVERS_WINDOW).shared_flits == 27


@pytest.mark.parametrize("shared", [-2, CREDIT_MODULUS // 2])
def test_a_pool_that_credits_cannot_count_is_refused(shared: int) -> None:
    says = f"link.shared_flits must be from -1 to 2047, not {shared}"
    with pytest.raises(ConfigError, match=says):
        LinkConfig(shared_flits=shared)


def test_credits_of_the_largest_pool() -> None:
    """Taken to the last one, returned at once, while the counts wrap; a count from before is a repeat."""
    cfg = LinkConfig(classes=1, shared_flits=CREDIT_MODULUS // 2 - 1)
    spends, grants = CreditSender(cfg), CreditReceiver(cfg)
    account = cfg.queues
    for _ in range(5):
        assert spends.hear(CreditKind.REQUEST, 0, 0, grants.count[account])
        assert spends.free(account) == cfg.shared_flits
        for _ in range(cfg.shared_flits):
            spends.spend(account)
            grants.arrive(account)
        assert spends.free(account) == 0 and not grants.room(account)
        old = grants.count[account]
        for n in range(cfg.shared_flits):
            grants.freed(account)
            if n < 256:
                assert spends.hear(CreditKind.REQUEST, 0, 0, grants.count[account])
                assert spends.hear(CreditKind.REQUEST, 0, 0, old) and spends.free(account) == n + 1


@pytest.mark.parametrize("classes", [1, 8])
def test_the_model_of_the_line_knows_the_window(classes: int) -> None:
    """Beyond it, window / round trip, whatever the packets."""
    for size in (0, 64, 448, 512):
        given = {"packet_bytes": size, "classes": classes, "responses": False}
        assert line_share(LINKS["x8"], delay_flits=59, **given) == 1.0
        for delay in (60, 80, 120):
            share = line_share(LINKS["x8"], delay_flits=delay, **given)
            assert share == pytest.approx(128 / (2 * delay + 9), rel=0.003)
