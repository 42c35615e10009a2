"""The precompiled header of Verilator's runtime: taken, shared, and done without."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtl.contract.config import named
from sim import toolchain
from sim.build import Built, build, objects
from sim.build.compile import NATIVE_FLAGS

ORDER = """
import sys
from pathlib import Path
from sim.build.objects import precompiled
from sim.progress import Progress
from sim.toolchain import verilator_root
include = verilator_root() / "include"
log = Path(sys.argv[1])
print(precompiled(["-O1", f"-I{include}", f"-I{include / 'vltstd'}"], log, Progress("")))
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A build root of this file's own, with the objects of the runtime that other tests have compiled."""
    root = tmp_path_factory.mktemp("build")
    for kept in toolchain.build_root().glob("objects/runtime-*/*-*.o"):
        copy = root / kept.relative_to(toolchain.build_root())
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, copy)
    yield root
    shutil.rmtree(root)  # 75 MB that pytest would keep


@pytest.fixture
def here(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same build root for builds inside this process, which has not met a header that failed."""
    monkeypatch.setenv("PLEXUS_BUILD", str(shelf))
    monkeypatch.setattr(objects, "_unfit", set())
    return shelf


def fifo(depth: int) -> Built:
    return build("fifo", named("tiny"), options={"shape": 8, "depth": depth})


def compiled(built: Built) -> list[str]:
    """The commands that compiled the model, without those that made what is kept."""
    lines = (built.folder / "build.log").read_text().splitlines()
    return [line for line in lines if line.startswith("$ ") and " model.cpp " in line]


def headers(root: Path) -> list[Path]:
    return sorted(root.glob("objects/header-*/*.gch"))


def test_model_takes_the_precompiled_header(here: Path) -> None:
    (command,) = compiled(fifo(3))  # it did not fail and was not repeated
    (header,) = headers(here)
    assert f"-include {header.with_suffix('')}" in command
    assert not header.with_suffix("").exists(), "a compiler may have read the text instead"


def test_next_model_takes_the_same(here: Path) -> None:
    fifo(3)
    before = {h: h.stat().st_mtime_ns for h in headers(here)}
    assert f"-include {next(iter(before)).with_suffix('')}" in compiled(fifo(4))[0]
    assert {h: h.stat().st_mtime_ns for h in headers(here)} == before


def test_spoilt_header_is_made_again(here: Path) -> None:
    fifo(3)
    (header,) = headers(here)
    os.truncate(header, 1000)
    left = header.parent / "12345.tmp"  # of a build that was killed
    left.write_text("half")
    assert len(compiled(fifo(5))) == 1
    assert not left.exists()
    (again,) = headers(here)
    assert again.stat().st_size == int(again.name.split("-")[1].split(".")[0])


def test_header_that_does_not_fit_is_done_without(here: Path) -> None:
    fifo(3)
    (header,) = headers(here)
    whole = header.read_bytes()
    header.write_bytes(bytes(len(whole)))
    try:
        first = compiled(fifo(6))
        assert ["-include" in command for command in first] == [True, False]
        assert ["-include" in command for command in compiled(fifo(7))] == [False]
    finally:
        header.write_bytes(whole)


def runtime() -> Path:
    """Where the runtime of benches' models is kept for the compiler of now."""
    return objects.Runtime("cocotb", "", [*NATIVE_FLAGS, toolchain.MAKE_VARIABLES["OPT_GLOBAL"]]).folder


def test_compiler_without_precompiled_headers_builds(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo(3)
    kept, compiled_already = headers(here), runtime()
    fake = tmp_path / "g++"
    fake.write_text(
        '#!/bin/sh\ncase "$*" in *c++-header*) echo "error: no such language"; exit 1;; esac\n'
        f'exec {toolchain.compiler()} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    shutil.copytree(compiled_already, runtime())
    assert ["-include" in command for command in compiled(fifo(8))] == [False]
    assert headers(here) == kept


def test_two_builds_at_once_make_one_header(tmp_path: Path) -> None:
    env = {**os.environ, "PLEXUS_BUILD": str(tmp_path), "PYTHONPATH": str(toolchain.ROOT)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", ORDER, str(tmp_path / f"{n}.log")], env=env, stdout=subprocess.PIPE, text=True
        )
        for n in range(2)
    ]
    said = {run.communicate(timeout=240)[0] for run in runs}
    (header,) = headers(tmp_path)
    assert said == {f"{header.with_suffix('')}\n"}
    logs = [log.read_text() for log in sorted(tmp_path.glob("*.log"))]
    assert sum("c++-header" in log for log in logs) == 1
    assert not list(tmp_path.glob("objects/*/*.tmp"))
    header.unlink()  # 75 MB that pytest would keep
