"""Tests of a group go to one worker. pytest and pytest-xdist agree on this by a private field, so it is asked here."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from sim.toolchain import ROOT

_TESTS = """
import os
import pytest

@pytest.mark.parametrize("group, i", [
    pytest.param(x, i, marks=pytest.mark.xdist_group(f"model {x}")) for i in range(5) for x in "abc"
])
def test_of(group, i, record_property):
    record_property("where", f"{group} {os.environ['PYTEST_XDIST_WORKER']}")
"""


def test_a_group_goes_to_one_worker(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(_TESTS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"]
        + ["--junitxml", "told.xml", "-p", "no:cacheprovider", "test_some.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    workers = defaultdict(set)
    for part in (tmp_path / "told.xml").read_text().split('value="')[1:]:
        group, worker = part.split('"')[0].split()
        workers[group].add(worker)
    assert len(workers) == 3
    assert all(len(each) == 1 for each in workers.values()), f"a group is on more than one worker: {dict(workers)}"
