"""The counter of NKI call sites, on a folder of made-up files."""

from pathlib import Path

import pytest

from firmware.nki.sites import counted, kind_of, sites
from firmware.views import KernelError
from sim.cli import main

WHOLE = """
import nki.isa as nisa
import nki.language as nl

def f(x):
    tile = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.ap(pattern=[[8, 8], [1, 8]]), name="in")
    nisa.iota(tile, [[1, 8]])
    return other.nisa.rng(tile), self.nl.nothing
"""
PARTS = """
import neuronxcc.nki as nki
from neuronxcc.nki import language as lang
from nki.isa import register_load as load, sendrecv
import nki.collectives as ncc

def f(x, a):
    sendrecv(src=x)
    ncc.all_reduce(x)
    load(a, x)
    nki.isa.nc_matmul(x, x, x, tile_position=(0, 0))
    nki.isa.dma_copy(dst=x, src=x.ap([[1, 8]], scalar_offset=a))
    nki.isa.never_heard_of(x)
    lang.add(x, a)
    return lang.no_such_dtype
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "whole.py").write_text(WHOLE)
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "plain.py").write_text("print(1)\n")
    return tmp_path


def test_each_call_site_has_a_kind() -> None:
    found = {site.short: kind_of(site) for site in sites(PARTS) if site.called}
    cores = "several cores; a program is one core's"
    assert found == {
        "nisa.sendrecv": ("several cores", cores),
        "ncc.all_reduce": ("several cores", cores),
        "nisa.register_load": ("missing", "no registers that a kernel sees"),
        "nisa.nc_matmul": ("argument", "no tile_position="),
        "nisa.dma_copy": ("argument", "no addresses from memory (scalar_offset, vector_offset)"),
        "nisa.never_heard_of": ("missing", "not looked at"),
        "nl.add": ("instruction", ""),
    }


def test_a_folder_is_counted(folder: Path) -> None:
    found = counted(folder)
    assert (found.files, found.whole, found.unread) == (2, ["inner/whole.py"], ["broken.py"])
    assert [found.of(k) for k in ("instruction", "lowered", "built", "missing", "argument", "several cores")] == [
        *(2, 1, 1),
        *(2, 2, 2),
    ]
    assert found.names == {"nl.no_such_dtype": 1}
    assert found.share() == 4 / 8
    assert found.share("built") == 3 / 7


def test_the_command_prints_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nki", "--count", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "     1  nisa.never_heard_of            missing       not looked at\n" in out
    assert "files that miss nothing: 1 of 2\n        inner/whole.py\n" in out
    assert "of call sites that need one core 50.0% are there; 42.9% of those that send something\n" in out


def test_wrong_folders_get_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KernelError, match="there is no folder"):
        counted(tmp_path / "none")
    with pytest.raises(KernelError, match="no Python file below"):
        counted(tmp_path)
    assert main(["nki", "--count", str(tmp_path), "--in", "x.npz"]) == 2
    assert "--count DIR runs no kernel" in capsys.readouterr().err
    assert main(["nki"]) == 2
    assert "plexus nki takes FILE.py:KERNEL and --in IN.npz, or --count DIR" in capsys.readouterr().err
