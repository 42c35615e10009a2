"""A test that passed with the same sources is not run again; --fresh, FRESH=1 and CI=true run all.

What a test depends on: its file and all that it imports or names, the tops that it (or a program it starts) has used,
the tools. Runs of benches inside a test are kept one by one (sim/run/runner.py), so tests with benches always run.
"""

import ast
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sim.build.sources import sources_of
from sim.build.tops import TOPS
from sim.run import verdicts
from sim.toolchain import ROOT, build_root

_BESIDE = ("Makefile", "pyproject.toml", ".ci/run", *(f"tools/{p.name}" for p in (ROOT / "tools").iterdir()))
_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")))
_LEDGER_READERS = {"verif/checks/cycles.py", "verif/mutants/plan.py"}
"""What reads verif/plan; other tests than law do not."""
_FIRMWARE, _COMPILED = ROOT / "firmware" / "gpsimd", {".c", ".cpp", ".h", ".ld", ".S", ".elf", ".toml"}
"""What tests of the GPSIMD engine compile, and what they compare it with."""
_LIBRARY = "firmware/gpsimd/library.py"
"""It reads an image that is no module."""
_LAW = ROOT / "tests" / "law"
"""It reads everything and takes seconds, so it always runs."""
_KEPT = [("kept", "yes")]
_SHELF = build_root() / "verdicts" / "tests"  # now: some tests have a PLEXUS_BUILD of their own
_USES = _SHELF / f".uses-{os.getpid()}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fresh", action="store_true", help="run every test, whatever passed before")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fresh"):
        os.environ["FRESH"] = "1"


@cache
def _sources(file: Path) -> str:
    """Digest over what a test file depends on."""
    texts = [n.value for n in ast.walk(ast.parse(file.read_bytes())) if isinstance(n, ast.Constant)]
    words = [t for t in texts if isinstance(t, str)]
    modules = ["sim.cli"] if any("plexus" in w for w in words) else []
    pages = _PAGES if any(".md" in w or "docs" in w for w in words) else ()
    needed = [file, ROOT / "tests" / "conftest.py", *(ROOT / name for name in (*_BESIDE, *pages))]
    found = sources_of(modules, [p for p in needed if p.is_file()], named=True)
    extra: list[Path] = []
    if _LEDGER_READERS & {str(file.relative_to(ROOT)), *found.files}:
        extra += (ROOT / "verif" / "plan").glob("*.toml")
    if _LIBRARY in found.files:
        extra += (_FIRMWARE / "lib").glob("*.elf")
    if "gpsimd" in file.name:
        extra += (p for p in _FIRMWARE.rglob("*") if p.is_file() and p.suffix in _COMPILED)
    return sources_of([], [file, *extra]).digest + found.digest if extra else found.digest


@cache
def _top(name: str) -> str:
    """Digest over what a top depends on."""
    return sources_of([TOPS[name].factory.partition(":")[0]]).digest if name in TOPS else "gone"


def _plain(nodeid: str) -> str:
    """Without the group that pytest-xdist hangs on it."""
    return nodeid.rpartition("@")[0] if nodeid.rfind("@") > nodeid.rfind("]") else nodeid


_ASKED = ("PLEXUS_SEEDS", "PLEXUS_KILLS")
"""Variables by which a test does more."""


def _record(item: pytest.Item) -> Path:
    asked = {name: os.environ.get(name, "") for name in _ASKED}
    what = {"test": _plain(item.nodeid), "sources": _sources(item.path), "asked": asked}
    return _SHELF / f"{verdicts.key_of(what)}.json"


_file_under_way: list[Path] = []


def _listen(item: pytest.Item) -> None:
    """Let uses be written down. Fixtures and caches outlive a test, so uses add up over a file."""
    if _file_under_way != [item.path]:
        _file_under_way[:] = [item.path]
        _SHELF.mkdir(parents=True, exist_ok=True)
        _USES.write_text("")
    os.environ[verdicts.USES_VARIABLE] = str(_USES)


def _kept(item: pytest.Item) -> bool:
    """Whether the test has passed with the same sources and tops."""
    try:
        tops: dict[str, str] = json.loads(_record(item).read_text())["tops"]
    except (OSError, ValueError, KeyError):
        return False
    return all(_top(name) == digest for name, digest in tops.items())


def _keep(item: pytest.Item) -> None:
    used = set(_USES.read_text().split("\n")) - {""}
    if verdicts.BENCH in used:
        return
    record = _record(item)
    temporary = record.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # a full disk: only a cache
        temporary.write_text(json.dumps({"test": item.nodeid, "tops": {name: _top(name) for name in sorted(used)}}))
        temporary.replace(record)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report a kept test as passed."""
    if item.path.is_relative_to(_LAW):
        return None
    if verdicts.fresh() or not _kept(item):
        _listen(item)
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for when in ("setup", "call", "teardown"):
        keywords = dict.fromkeys(item.keywords, 1)
        report = pytest.TestReport(item.nodeid, item.location, keywords, "passed", None, when, user_properties=_KEPT)
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    item.session._setupstate.teardown_exact(nextitem)  # fixtures that nobody behind this test needs
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """Keep a test that passes: one that fails or skips does not come back here."""
    result = yield
    if not item.path.is_relative_to(_LAW):
        _keep(item)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tests have their own names in reports, however they are distributed."""
    if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker's name of a test must be that of its collection
        report.nodeid = _plain(report.nodeid)


def pytest_sessionfinish() -> None:
    _USES.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    passed = terminalreporter.stats.get("passed", [])
    count = sum(report.user_properties == _KEPT for report in passed)
    if count:
        terminalreporter.write_line(f"{count} of {len(passed)} passed before with the same sources (--fresh runs all)")
