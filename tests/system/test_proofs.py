"""The proofs that take seconds; `make formal` runs all."""

import os

import pytest

from sim.toolchain import activate
from verif.formal.run import discover, run_proof

MODULES = (
    "verif.formal.arbiter",
    "verif.formal.axi_port",
    "verif.formal.axi_share",
    "verif.formal.class_turn",
    "verif.formal.counters",
    "verif.formal.dma_complete",
    "verif.formal.dma_reader",
    "verif.formal.fifo",
    "verif.formal.gpsimd_compressed",
    "verif.formal.gpsimd_fetch",
    "verif.formal.gpsimd_instructions",
    "verif.formal.gpsimd_hazards",
    "verif.formal.gpsimd_lanes",
    "verif.formal.gpsimd_shared",
    "verif.formal.issue_check_clock",
    "verif.formal.issue_start",
    "verif.formal.psum_guard",
    "verif.formal.sbuf_adder",
    "verif.formal.streams",
)
"""Where they are: named, so that a kept verdict depends on them."""

SHORT = {name: proof for name, proof in discover().items() if proof.short}


@pytest.mark.parametrize("name", SHORT)
def test_holds_and_finds_its_faults(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # activate changes it
    activate()
    bad = [f"{o.task}: {o.detail}" for o in run_proof(SHORT[name]) if not o.ok]
    assert not bad, "\n".join(bad)


def test_modules_of_short_proofs_are_named_here() -> None:
    assert {proof.make.__module__ for proof in SHORT.values()} == set(MODULES)
