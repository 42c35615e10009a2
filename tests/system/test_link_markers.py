"""Faults at the markers of two whole ports: nothing is lost, and what the ports may do wrong there is noticed."""

import pytest

from verif.checks.link_markers import EVENTS, marked, open_link

NOTICED = (
    "the window is one flit too wide",
    "a credit is not returned to the sender",
    "the epoch is ignored: every gap is a nak",
    "a marker that is missing on all lanes counts as a word of a flit",
    "the scrambler of the receiver does not start again at a marker",
)
"""The others need single wrong bytes, repeats or another session."""


def test_faults_at_markers() -> None:
    link = open_link(planted=True)
    try:
        seen = marked(link, count=70, seed=2)
        counts = link.counts()
    finally:
        link.close()
    assert {(event, end) for event, _, end in seen} == {(event, end) for event in EVENTS for end in (0, 1)}
    assert {state for _, state, _ in seen} >= {"idle", "streaming", "in replay", "window full"}
    assert counts.refused > 200 and counts.retrained > 0


@pytest.mark.parametrize("fault", NOTICED)
def test_fault_of_a_port_is_noticed(fault: str) -> None:
    link = open_link(plant=fault)
    try:
        with pytest.raises(AssertionError):
            marked(link, count=70, seed=2)
    finally:
        link.close()
