"""For the tests in tests/sim: run a bench that must pass, or one that must notice a planted fault."""

from collections.abc import Mapping
from typing import Any

import pytest

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import named
from sim.build.coverage import counting
from sim.run.runner import BenchError, Verdict, run_bench
from sim.systems.configurations import by_name

__all__ = ["configuration", "must_notice", "must_pass"]


def configuration(cfg: AnyConfig | str) -> AnyConfig:
    """A configuration of a core, a link or a switch, or the one of that name."""
    if not isinstance(cfg, str):
        return cfg
    known = by_name()
    return known[cfg] if cfg in known else named(cfg)


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
    where = configuration(cfg)
    verdict = run_bench(top, bench, where, seed=seed, planted=planted, options=options, testcase=testcase)
    return verdict.require()


def must_notice(
    top: str,
    bench: str,
    fault: str,
    cfg: AnyConfig | str = "tiny",
    *,
    seed: int = 1,
    options: Mapping[str, Any] | None = None,
    testcase: str | None = None,
    hangs: bool = False,
) -> Verdict:
    """Run the bench with the planted fault of this name; BenchError unless a check of the bench notices it.

    hangs: the fault stops the unit, so that a test's timeout is the check. Skipped while coverage is counted.
    """
    if counting():
        pytest.skip("coverage is of runs without a fault")
    where = configuration(cfg)
    verdict = run_bench(top, bench, where, seed=seed, plant=fault, planted=True, options=options, testcase=testcase)
    if verdict.ok:
        raise BenchError(f"{bench} did not notice a planted fault of {top} ({fault})\nagain: {verdict.again}")
    if accident := _accident(verdict, hangs):
        raise BenchError(
            f"{bench} noticed a planted fault of {top} ({fault}) by accident: {accident}\n"
            f"{verdict.first}\nlog: {verdict.folder / 'run.log'}\nagain: {verdict.again}"
        )
    return verdict


CHECKS = ("verif/benches/", "verif/agents/", "verif/golden/", "verif/checks/outcomes.py", "/cocotbext/axi/")
"""Where a check of a unit is written: its bench, the agents at its ports (the AXI4 slave is a library's), its model,
the comparison of elements."""


def _accident(verdict: Verdict, hangs: bool) -> str:
    """Why the first failure is no check of the unit; empty if it is one."""
    case = next(c for c in verdict.cases if not c.ok)
    if case.kind == "SimTimeoutError":
        return "" if hangs else f"{case.name} ran into its timeout, and RUNS does not say that the fault hangs"
    if case.kind != "AssertionError":
        return f"{case.name} ended with {case.kind or 'an error without a class'}, which is no comparison"
    if any(check in case.where for check in CHECKS):
        return ""
    return f"{case.name} failed in {case.where}, which checks no unit"
