"""The command line: what wrong input gets. No simulator starts here."""

import errno
from pathlib import Path

import numpy as np
import pytest

import sim.report.terminal
import sim.systems.core.run
from sim.cli import main


def sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 2) -> str:
    """Run the command; it must end with `code` and one sentence on stderr."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("plexus: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "gemm", "--set", "tensor.rws=8"], ["tensor.rws", "rows, cols"]),
        (["run", "gemm", "--set", "tensr.rows=8"], ["tensr", "partitions"]),
        (["run", "gemm", "--set", "tensor.rows=100"], ["tensor.rows", "power of two from 8 to 128", "100"]),
        (["run", "gemm", "--set", "tensor.rows"], ["section.key=value"]),
        (["run", "gemm", "--set", "name=x/../../../.."], ["name must be", "x/../../../.."]),
        (["run", "gemm", "--set", "tensor=8"], ["tensor.FIELD"]),
        (["run", "gemm", "--config", "smal"], ["smal", "tiny, small, full, trn2, trn3, trn4"]),
        (["run", "gemm", "--config", "absent.toml"], ["no configuration file absent.toml"]),
        (["run", "gem"], ["'gem'", "gemm", "minilm-projection"]),
        (["run", "gemm", "-p", "m=0"], ["m must be at least 1", "0"]),
        (["run", "gemm", "-p", "m=many"], ["whole number", "many"]),
        (["run", "gemm", "-p", "q=1"], ["no parameter 'q'", "dtype"]),
        (["run", "gemm", "-p", "m"], ["name=value"]),
        (["run", "gpsimd"], ["elf=FILE", "plexus firmware build"]),
        (["run", "gpsimd", "-p", "program=topq"], ["no program 'topq'", "the nearest is 'topk'", "nonzero"]),
        (["run", "gpsimd", "-p", "file=a.elf"], ["no parameter 'file'", "elf, in, out, entry, cores, watchdog"]),
        (["run", "gpsimd", "-p", "elf=absent.elf"], ["absent.elf cannot be read", "No such file"]),
        (["firmware", "info", "a.elf", "--config", "tiny"], ["a.elf cannot be read"]),
        (["run", "gemm", "-p", "dtype=int8"], ["dtype", "bf16, fp16"]),
        (["run", "gemm", "--array", "fast"], ["native or structural", "fast"]),
        (["run", "gemm", "--waves", "x.png"], ["ends in .fst", ".vcd", "x.png"]),
        (["run", "gemm", "--waves", "x.fst", "--waves-from", "9", "--waves-until", "9"], ["cycle 9"]),
        (["run", "gemm", "--waves-scope", "tensor"], ["--waves-scope", "the file of --waves"]),
        (["build", "fifo", "--waves", "png"], ["fst or vcd", "png"]),
        (["build", "mac", "--array", "native"], ["top mac", "takes no --array"]),
        (["emit", "mac", "--array", "native", "-o", "x.v"], ["top mac", "takes no --array"]),
        (["lint", "core", "--array", "fast"], ["native or structural", "fast"]),
        (["run", "gemm", "--seed", "x"], ["--seed"]),
        (["run", "gemm", "--seed", "-1"], ["--seed", "greater than or equal to 0"]),
        (["run"], ["WORKLOAD"]),
        (["run", "gemm", "--colour"], ["--colour"]),
        (["rnu"], ["rnu"]),
        (["eval", "mac", "--in", "a.npz", "--out", "b.npz"], ["no unit 'mac'", "bf16_mac"]),
        (["eval", "bf16_mac", "--in", "absent.npz", "--out", "b.npz"], ["no file absent.npz"]),
        (["eval", "bf16_mac", "--out", "b.npz"], ["--in"]),
        (["build", "cor"], ["no top 'cor'", "fp32_add"]),
        (["list", "engines"], ["engines", "workloads, configs, units"]),
        (["emit", "fp32_add", "-o", "/nonexistent/x.v"], ["/nonexistent/x.v", "cannot be written"]),
        (["emit", "fp32_add", "-o", ""], ["the path is empty"]),
        (["emit", "fp32_add", "-o", "/"], ["/ is a folder"]),
        (["emit", "fp32_add", "--array", "native", "-o", "x.v"], ["fp32_add has no C++ model in it"]),
        (["emit", "array", "--array", "Native", "-o", "x.v"], ["native or structural", "'Native'"]),
        (["build", "fp32_add", "--array", "native"], ["fp32_add has no C++ model in it"]),
        (["run", "gemm", "--out", ""], ["--out", "the path is empty"]),
        (["run", "gemm", "--waves", " "], ["--waves", "the path is empty"]),
        (["eval", "exp", "--in", "", "--out", "x.npz"], ["--in", "the path is empty"]),
        (["run", "gemm", "-p", "m=3", "-p", "m=4"], ["m is given twice, as 3 and as 4"]),
        (["run", "link", "-p", "lanes=2", "-p", "lanes=4"], ["lanes is given twice, as 2 and as 4"]),
        (["run", "switch", "-p", "ports=4", "-p", "ports=5"], ["ports is given twice, as 4 and as 5"]),
        (["run", "gemm", "--set", "dma.rings=1", "--set", "dma.rings=2"], ["dma.rings is set twice"]),
        (["run", "gemm", "--set", "dma.=3"], ["section.key=value", "'dma.=3'"]),
        (["run", "gemm", "--set", "dma.engines=1e1"], ["whole number", "'1e1'"]),
        (["run", "gemm", "--set", "dma.engines.x=1"], ["whole number", "{'x': 1}"]),
        (["run", "gemm", "-p", "m=nan"], ["whole number", "'nan'"]),
        (["run", "gemm", "-p", "m=\uff13"], ["whole number"]),
        (["run", "gemm", "--in", "absent.npz"], ["no file absent.npz"]),
        (["run", "gemm", "--in", ""], ["--in", "the path is empty"]),
        (["run", "gemm", "--out-arrays", "y.npz"], ["--out-arrays", "which --in names"]),
        (["run", "link", "--in", "x.npz"], ["link takes no arrays", "gemm, attention, softmax"]),
        (["run", "minilm", "--in", "x.npz"], ["minilm takes no arrays"]),
    ],
)
def test_wrong_input_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: list[str]
) -> None:
    text = sentence(capsys, arguments)
    for words in says:
        assert words in text


@pytest.mark.parametrize(
    ("arrays", "more", "says"),
    [
        ({"a": np.ones((2, 3))}, [], ["a [m, k], b [k, n]; there is no b"]),
        ({"a": np.ones((2, 3)), "b": np.ones((3, 2)), "c": np.ones(1)}, [], ["there is c, which it does not take"]),
        ({"a": np.ones((2, 3)), "b": np.ones((4, 2))}, [], ["b (4, 2) has k=4, and a (2, 3) has k=3"]),
        ({"a": np.ones((2, 3)), "b": np.ones((3, 2))}, ["-p", "m=5"], ["m=5 is given, and a (2, 3) has m=2"]),
        ({"a": np.ones((2, 3)), "b": np.ones((3, 2), np.int64)}, [], ["array b is of dtype int64", "cast it"]),
        ({"a": np.ones((2, 3)), "b": np.ones((3, 2))}, ["--out-arrays", "/"], ["/ is a folder"]),
    ],
)
def test_wrong_arrays_get_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arrays: dict[str, np.ndarray], more: list[str], says: list[str]
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    text = sentence(capsys, ["run", "gemm", "--in", str(path), *more])
    for words in says:
        assert words in text


def test_a_workload_says_which_arrays_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "ffn"]) == 0
    assert "--in IN.npz" in (text := capsys.readouterr().out) and "up_bias [hidden] (optional)" in text
    assert main(["list", "dma"]) == 0
    assert "--in" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('base = "small"\n[tensor\nrows = 8\n', "not valid TOML"),
        ("[tensor]\nrows = 8\n", 'base = "NAME"'),
        ('base = "small"\n[tensor]\nrws = 8\n', "tensor.rws"),
        ('base = "small"\n[tensor]\nrows = "8"\n', "whole number"),
        ('base = "small"\n[tensor]\nrows = 100\n', "power of two"),
    ],
)
def test_wrong_toml_gets_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert says in sentence(capsys, ["run", "gemm", "--config", str(path)])


def test_toml_that_is_no_text_gets_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b'base = "small"\nname = "\xff\xfe"\n')
    text = sentence(capsys, ["run", "gemm", "--config", str(path)])
    assert str(path) in text and "cannot be read" in text


def test_a_configuration_has_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "small"]) == 0
    text = capsys.readouterr().out
    assert "dma.engines=4" in text and "a power of two from 1 to 16" in text
    (latency,) = [line for line in text.splitlines() if "hbm.latency_ns=100" in line]
    assert latency.endswith("; ns; builds nothing)")
    assert main(["list", "x8"]) == 0 and "weights=1:1:1:1:1:1:1:1" in capsys.readouterr().out
    assert main(["list", "sw4"]) == 0 and "link.lanes=8" in capsys.readouterr().out


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    for command in ("run", "eval", "build", "emit", "list"):
        assert f"\n  {command} " in out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("attention", ["text", "seq", "a query sees the keys up to its own (true or false)"]),
        ("softmax", ["columns=512", "(bf16, fp32, fp16)", "(whole number from 1 to 1048576)"]),
        ("activation", ["scale", "may be left out", "gelu_tanh"]),
        ("convert", ["codes in src's format", "e8m0", "out: codes in dst's format"]),
    ],
)
def test_a_name_has_its_parameters(capsys: pytest.CaptureFixture[str], name: str, says: list[str]) -> None:
    assert main(["list", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name}: ")
    assert [words for words in says if words not in text] == []


@pytest.mark.parametrize("what", ["workloads", "configs", "units", "tops"])
def test_lists_have_one_line_each(capsys: pytest.CaptureFixture[str], what: str) -> None:
    assert main(["list", what]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert all(line and not line.startswith(" ") for line in lines)


def test_interrupt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sim.systems.core.run, "run_workload", interrupted)
    assert "interrupted" in sentence(capsys, ["run", "gemm"], 130)


def test_full_disk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere")

    monkeypatch.setattr(sim.systems.core.run, "run_workload", full)
    assert "disk is full" in sentence(capsys, ["run", "gemm"])


def test_full_memory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(sim.systems.core.run, "run_workload", full)
    assert "more memory than there is" in sentence(capsys, ["run", "gemm"])


@pytest.mark.parametrize(
    ("option", "place", "says"),
    [
        ("--out", "file", "file is a file"),
        ("--out", "file/below", "cannot be made: Not a directory"),
        ("--waves", "folder.vcd", "folder.vcd is a folder"),
        ("--waves", "file/x.vcd", "file is a file"),
        ("--waves", "file/below/x.vcd", "cannot be made: Not a directory"),
    ],
)
def test_places_are_checked_before_anything_is_built(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    option: str,
    place: str,
    says: str,
) -> None:
    def built(*_: object, **__: object) -> None:
        raise AssertionError("something was built")

    monkeypatch.setattr(sim.systems.core.run, "build_core", built)
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path / "build"))
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.vcd").mkdir()
    assert says in sentence(capsys, ["run", "gemm", option, str(tmp_path / place)])
    assert (tmp_path / "file").read_text() == ""


def test_folder_without_permission(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(sim.systems.core.run.tempfile, "TemporaryFile", refused)
    assert "nothing can be written" in sentence(capsys, ["run", "gemm", "--out", str(tmp_path)])


def test_wrong_arrays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, a=np.zeros(3, np.float32), b=np.zeros(3, np.uint16), acc=np.zeros(3, np.uint32))
    text = sentence(capsys, ["eval", "bf16_mac", "--in", str(path), "--out", str(tmp_path / "out.npz")])
    assert "a must hold bit patterns as uint16, not float32" in text
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(("good", "code"), [(True, 0), (False, 1)])
def test_exit_code_says_whether_bits_match(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, good: bool, code: int
) -> None:
    report = {"match": good, "end": "done", "faults": []}
    monkeypatch.setattr(sim.report.terminal, "show", lambda *_: None)
    monkeypatch.setattr(sim.systems.core.run, "run_workload", lambda *_: report)
    assert main(["run", "gemm", "--out", str(tmp_path)]) == code
