"""For the launchers in tests/sim: run a bench that must pass, or one that must notice a planted fault."""

import os
from collections.abc import Mapping
from typing import Any

import pytest

from rtl.contract.config import named
from rtl.contract.link_config import LINKS
from rtl.contract.switch_config import SWITCHES, AnyConfig
from sim.coverage import counting
from sim.repeat import fault_named
from sim.runner import BenchError, Verdict, run_bench

__all__ = ["SEEDS", "faults_of", "must_notice", "must_pass"]

SEEDS = tuple(int(s) for s in os.environ.get("PLEXUS_SEEDS", "1 2 3").split())
"""Seeds of every random bench; PLEXUS_SEEDS chooses others."""


def faults_of(component: type) -> list[int]:
    """Numbers of the planted faults of a unit; AssertionError if it has none."""
    faults = list(getattr(component, "FAULTS", {}))
    assert faults, f"{component.__name__} has no planted faults"
    return faults


def _configuration(cfg: AnyConfig | str) -> AnyConfig:
    if not isinstance(cfg, str):
        return cfg
    others: dict[str, AnyConfig] = {**LINKS, **SWITCHES}
    return others[cfg] if cfg in others else named(cfg)


def must_pass(
    top: str,
    bench: str,
    seed: int,
    cfg: AnyConfig | str = "tiny",
    *,
    planted: bool = True,
    options: Mapping[str, Any] | None = None,
    testcase: str | None = None,
) -> Verdict:
    """Run the bench without a fault; BenchError with the first failure if it is not green.

    planted: on the build that has the planted faults in it (inactive), so that there is only one.
    """
    where = _configuration(cfg)
    verdict = run_bench(top, bench, where, seed=seed, planted=planted, options=options, testcase=testcase)
    return verdict.require()


def must_notice(
    top: str,
    bench: str,
    fault: int,
    cfg: AnyConfig | str = "tiny",
    *,
    seed: int = 1,
    options: Mapping[str, Any] | None = None,
    testcase: str | None = None,
    hangs: bool = False,
) -> Verdict:
    """Run the bench with planted fault `fault`; BenchError unless a check of the bench notices it.

    hangs: the fault stops the unit, so that a test's timeout is the check. Skipped while coverage is counted.
    """
    if counting():
        pytest.skip("coverage is of runs without a fault")
    where = _configuration(cfg)
    verdict = run_bench(top, bench, where, seed=seed, plant=fault, planted=True, options=options, testcase=testcase)
    if verdict.ok:
        raise BenchError(f"{bench} did not notice {_fault(top, fault)}\nagain: {verdict.again}")
    if accident := _accident(verdict, hangs):
        raise BenchError(
            f"{bench} noticed {_fault(top, fault)} by accident: {accident}\n"
            f"{verdict.first}\nlog: {verdict.folder / 'run.log'}\nagain: {verdict.again}"
        )
    return verdict


def _fault(top: str, fault: int) -> str:
    return f"planted fault {fault} of {top} ({fault_named(top, fault) or 'it has no name'})"


CHECKS = ("verif/benches/", "verif/agents/", "verif/golden/", "verif/checks/outcomes.py", "/cocotbext/axi/")
"""Where a check of a unit is written: its bench, the agents at its ports (the AXI4 slave is a library's), its model,
the comparison of elements."""


def _accident(verdict: Verdict, hangs: bool) -> str:
    """Why the first failure is no check of the unit; empty if it is one."""
    case = next(c for c in verdict.cases if not c.ok)
    if case.kind == "SimTimeoutError":
        return "" if hangs else f"{case.name} ran into its timeout, and the launcher does not say that the fault hangs"
    if case.kind != "AssertionError":
        return f"{case.name} ended with {case.kind or 'an error without a class'}, which is no comparison"
    if any(check in case.where for check in CHECKS):
        return ""
    return f"{case.name} failed in {case.where}, which checks no unit"
