"""Launchers of the bench of the rules of a link: replay, credits, sessions."""

import pytest

from rtl.contract.link_config import LINKS, LinkConfig
from rtl.link.rules.rules import LinkRules
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

RULES = "verif.benches.link.bench_rules"
SMALL = LinkConfig(name="small", sequence_numbers=8, window_flits=3)
"""The numbers of the search."""

OUTAGE, RESTART = "all_arrives_after_outages", "a_restart_loses_nothing_in_silence"
SEEN_END_TO_END = {
    "the window is one flit too wide": OUTAGE,
    "the epoch is ignored": OUTAGE,
    "a credit is not returned": OUTAGE,
    "the session of the partner is not compared": RESTART,
}
"""Faults that a link must show in what it delivers or counts, without a look at the Python rules."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", [LINKS["x8"], SMALL], ids=lambda c: c.name)
def test_link_rules(cfg, seed: int) -> None:
    must_pass("link_rules", RULES, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(LinkRules))
def test_link_rules_fault_is_noticed(fault: int) -> None:
    must_notice("link_rules", RULES, fault, "x8")


@pytest.mark.parametrize("name", SEEN_END_TO_END)
def test_link_rules_fault_is_seen_by_what_arrives(name: str) -> None:
    fault = next(n for n, what in LinkRules.FAULTS.items() if name in what)
    must_notice("link_rules", RULES, fault, SMALL, testcase=SEEN_END_TO_END[name])
