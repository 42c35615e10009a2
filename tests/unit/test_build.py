"""The build cache: what a build leaves when it ends well, badly, twice, or not at all."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rtl.contract.config import named
from sim import toolchain
from sim.build import Built, build, sources
from sim.build import model as build_module
from sim.errors import PlexusError

ORDER = """
import signal
import sys

# A job that a shell put in the background ignores interrupts, and its children do: a person's does not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nor does one under nohup hear this
from rtl.contract.config import named
from sim.build import Built, build
from sim.errors import PlexusError
try:
    b = build("fifo", named("tiny"), options={"shape": 8, "depth": int(sys.argv[1])})
except PlexusError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
print("cached" if b.cached else "built", b.folder)
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A build root of this file's own, shared by its tests so that the runtime is compiled once."""
    root = tmp_path_factory.mktemp("build")
    yield root
    for header in root.glob("objects/header-*/*.gch"):
        header.unlink()  # 75 MB that pytest would keep


@pytest.fixture
def here(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same build root for builds inside this process."""
    monkeypatch.setenv("PLEXUS_BUILD", str(shelf))
    return shelf


def start(shelf: Path, depth: int, **more: str) -> subprocess.Popen:
    """Another Python that builds a FIFO of `depth`."""
    env = {**os.environ, "PLEXUS_BUILD": str(shelf), "PYTHONPATH": str(toolchain.ROOT), **more}
    return subprocess.Popen(
        [sys.executable, "-c", ORDER, str(depth)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def until_compiling(shelf: Path, process: subprocess.Popen) -> None:
    """Wait for the moment when the compiler is at work."""
    deadline = time.monotonic() + 240
    while not (list(shelf.glob("fifo/.*/obj/Vtop.mk")) and at_work(shelf)):
        assert process.poll() is None, "the build ended before it could be interrupted"
        assert time.monotonic() < deadline, "the build never reached the compiler"
        time.sleep(0.02)


def finished(shelf: Path) -> list[Path]:
    return sorted(p.parent for p in shelf.glob("fifo/*/built.json"))


def test_build_is_done_once_and_not_elaborated_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"shape": 8, "depth": 3}
    first = build("fifo", named("tiny"), options=options)
    assert not first.cached
    assert first.binary.exists()

    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("a cached build was elaborated")

    monkeypatch.setattr(build_module, "make_component", refuse)
    begin = time.monotonic()
    again = build("fifo", named("tiny"), options=options)
    assert again.cached
    assert again.folder == first.folder
    assert time.monotonic() - begin < 1.0


def test_same_verilog_under_another_configuration_is_not_compiled_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"shape": 8, "depth": 3}
    build("fifo", named("tiny"), options=options)

    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("the same Verilog was compiled twice")

    monkeypatch.setattr("sim.build.compile.compile_model", refuse)
    other = build("fifo", named("small"), options=options)
    assert not other.cached
    assert other.binary.exists()


def at_work(shelf: Path) -> dict[int, str]:
    """Processes whose folder lies in this build root: the tools of a build, and what they have started."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if (entry / "cwd").readlink().is_relative_to(shelf):
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


def until_alone(shelf: Path) -> None:
    """Wait until nobody works in this build root any more."""
    deadline = time.monotonic() + 60
    while left := at_work(shelf):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


ENDS = [(signal.SIGINT, 5), (signal.SIGKILL, 6), (signal.SIGTERM, 7), (signal.SIGHUP, 8)]


@pytest.mark.parametrize(("how", "depth"), ENDS, ids=lambda v: getattr(v, "name", None))
def test_interrupted_build_leaves_nothing(shelf: Path, how: signal.Signals, depth: int) -> None:
    before = finished(shelf)
    process = start(shelf, depth)
    until_compiling(shelf, process)
    process.send_signal(how)
    code, _, _ = finish(process)
    assert code == -how
    assert finished(shelf) == before
    until_alone(shelf)
    if how != signal.SIGKILL:
        assert not [p for p in shelf.glob("fifo/.*") if p.is_dir()], "a half-made folder is left"
    code, out, err = finish(start(shelf, depth))
    assert code == 0, err
    assert out.startswith("built ")
    assert not [p for p in shelf.glob("fifo/.*") if p.is_dir()], "a half-made folder is left"


def spoil_json(built: Built) -> None:
    (built.folder / "built.json").write_text('{"binary": "to')


def spoil_by_emptying(built: Built) -> None:
    (built.folder / "built.json").write_bytes(b"\xff")


def spoil_kind(built: Built) -> None:
    (built.folder / "built.json").write_text("[]")


def spoil_key(built: Built) -> None:
    (built.folder / "built.json").write_text('{"binary": "top", "content": ""}')


def spoil_away(built: Built) -> None:
    (built.folder / "built.json").unlink()


def spoil_binary_away(built: Built) -> None:
    built.binary.unlink()


def spoil_binary(built: Built) -> None:
    os.truncate(built.binary, 1000)


def spoil_binary_by_emptying(built: Built) -> None:
    os.truncate(built.binary, 0)


def spoil_ports(built: Built) -> None:
    os.truncate(built.folder / "ports.json", 5)


SPOILS = [f for name, f in list(globals().items()) if name.startswith("spoil_")]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda f: f.__name__)
def test_spoilt_build_is_made_again(
    here: Path, spoil: Callable[[Built], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"shape": 8, "depth": 3}
    first = build("fifo", named("tiny"), options=options)
    binary = first.binary.read_bytes()

    def compiled(folder: Path, *args: object, **more: object) -> str:  # what a compiler does is known
        for name, content in (("top", binary), ("ports.json", b"[]"), ("top.v", b"")):
            (folder / name).write_bytes(content)
        return "top"

    monkeypatch.setattr("sim.build.compile.compile_model", compiled)
    capsys.readouterr()
    spoil(first)
    again = build("fifo", named("tiny"), options=options)
    assert not again.cached
    assert again.binary.read_bytes() == binary
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("plexus: ")]
    assert len(said) == 1 and said[0].endswith(", so fifo is built again"), said
    assert build("fifo", named("tiny"), options=options).cached
    assert not [p for p in here.glob("fifo/.*") if p.is_dir()]


def test_spoilt_objects_are_compiled_again(here: Path) -> None:
    build("fifo", named("tiny"), options={"shape": 8, "depth": 3})
    runtime = sorted(here.glob("objects/runtime-*/*.o"))
    assert runtime
    for path in runtime:
        os.truncate(path, 100)
    assert build("fifo", named("tiny"), options={"shape": 8, "depth": 14}).binary.stat().st_size > 0
    sizes = {path.name: path.stat().st_size for path in here.glob("objects/runtime-*/*.o")}
    assert all(int(name.removesuffix(".o").rpartition("-")[2]) == size for name, size in sizes.items()), sizes


def test_spoilt_facts_about_sources_are_found_again(here: Path) -> None:
    fresh = sources.sources_of(["rtl.base.fifo"]).files
    for text in ("", "[]", '{"rtl/base/fifo.py": {}}', '{"rtl/base/fifo.py": 3}'):
        (here / "sources.json").write_text(text)
        assert sources.sources_of(["rtl.base.fifo"]).files == fresh


def test_two_builds_of_the_same_share(shelf: Path) -> None:
    runs = [finish(p) for p in [start(shelf, 9), start(shelf, 9)]]
    assert [code for code, _, _ in runs] == [0, 0], runs
    words = sorted(out.split() for _, out, _ in runs)
    assert [w[0] for w in words] == ["built", "cached"]
    assert words[0][1] == words[1][1]


def test_missing_compiler_is_one_sentence(shelf: Path, tmp_path: Path) -> None:
    for tool in ("make", "perl", "ar", "env"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "/bin/false")
    code, _, err = finish(start(shelf, 10, PATH=str(tmp_path), CXX=""))
    assert code == 2
    assert err == "building a model needs a C++ compiler and none was found (g++ and c++): install g++\n"


def test_missing_make_is_one_sentence(shelf: Path, tmp_path: Path) -> None:
    for tool in ("g++", "perl", "ar", "env"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "/bin/false")
    code, _, err = finish(start(shelf, 10, PATH=str(tmp_path), CXX=""))
    assert code == 2
    assert err == "make is needed to compile a model and is not on PATH: install make\n"


def test_full_disk_met_by_a_tool_is_one_sentence(shelf: Path, tmp_path: Path) -> None:
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\necho 'fatal error: top.cpp: No space left on device'\nexit 1\n")
    fake.chmod(0o755)
    code, _, err = finish(start(shelf, 11, PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert code == 2
    assert err.startswith("the disk is full: building fifo needs room under ")
    assert err.count("\n") == 1
    assert not [p for p in shelf.glob("fifo/.*") if p.is_dir()]


def test_full_disk_met_by_us_is_one_sentence(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **more: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sim.build.compile.compile_model", full)
    before = finished(here)
    with pytest.raises(PlexusError, match="^the disk is full: building fifo needs room under "):
        build("fifo", named("tiny"), options={"shape": 8, "depth": 12})
    assert finished(here) == before


def test_compiler_that_fails_shows_its_words_and_keeps_the_log(shelf: Path, tmp_path: Path) -> None:
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\necho 'model.cpp:1: error: something is wrong'\nexit 1\n")
    fake.chmod(0o755)
    code, _, err = finish(start(shelf, 13, PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert code == 2
    assert "model.cpp:1: error: something is wrong" in err
    log = Path(err.rsplit("the whole log is ", 1)[1].strip())
    assert "something is wrong" in log.read_text()


def test_wrong_names_are_refused_with_a_list(here: Path) -> None:
    with pytest.raises(PlexusError, match="there is no top 'fifi'; there are .*fifo"):
        build("fifi", named("tiny"))
    with pytest.raises(PlexusError, match="top fifo has no option 'deep'; its options are: shape, depth"):
        build("fifo", named("tiny"), options={"deep": 3})
    with pytest.raises(PlexusError, match="a model is of kind cocotb or native, not 'vhdl'"):
        build("fifo", named("tiny"), kind="vhdl")


def test_digest_follows_imports_cells_and_includes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path / "build"))
    (tmp_path / "rtl" / "cells").mkdir(parents=True)
    files = {
        "rtl/__init__.py": "",
        "rtl/a.py": "from rtl.b import B\n",
        "rtl/b.py": "CELL = 'cell.cpp'\n",
        "rtl/unrelated.py": "",
        "rtl/cells/cell.cpp": '#include "cell.h"\n',
        "rtl/cells/cell.h": "",
        "rtl/cells/other.sv": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    first = sources.sources_of(["rtl.a"])
    assert set(first.files) == set(files) - {"rtl/unrelated.py", "rtl/cells/other.sv"}
    (tmp_path / "rtl" / "unrelated.py").write_text("x = 1\n")
    assert sources.sources_of(["rtl.a"]).digest == first.digest
    (tmp_path / "rtl" / "cells" / "cell.h").write_text("// new\n")
    assert sources.sources_of(["rtl.a"]).digest != first.digest
