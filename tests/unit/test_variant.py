"""A run says which variant it was, and no two variants share a folder."""

import itertools
from pathlib import Path

import pytest

from firmware.workloads import find_workload
from rtl.contract.config import load
from rtl.contract.link_config import LINKS
from sim.run.variant import changes, described
from sim.systems.core.run import Run
from sim.systems.link.run import LinkRun, parse_link
from sim.systems.switch.params import SwitchRun, parse_switch


def folder(*settings: str, params: tuple[str, ...] = (), seed: int = 0, array: str = "native") -> Path:
    found = find_workload("gemm").parse(params)
    return Run(workload="gemm", params=found, cfg=load("small", settings), seed=seed, array=array).folder


def test_a_plain_run_has_the_plain_folder() -> None:
    assert folder().name == "gemm-small"
    assert folder(params=("m=128",)).name == "gemm-small"  # the default
    assert folder("dma.engines=4").name == "gemm-small"
    assert LinkRun(params=parse_link([])).folder.name == "link-x8"
    assert SwitchRun(params=parse_switch([])).folder.name == "switch-sw16"
    assert SwitchRun(params=parse_switch([]), config="sw4").folder.name == "switch-sw4"


def test_every_variant_has_a_folder_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text('base = "small"\npartitions = 64\n')
    found = [
        folder(), folder("dma.engines=8"), folder("dma.engines=8", "dma.rings=2"), folder(params=("m=64",)),
        folder(seed=1), folder(params=("seed=1",)), folder(array="structural"), folder("hbm.latency_ns=50"),
        Run(workload="gemm", params=find_workload("gemm").parse(()), cfg=load(str(file))).folder,
        LinkRun(params=parse_link(["delay=5"])).folder, LinkRun(params=parse_link([]), seed=2).folder,
        SwitchRun(params=parse_switch(["ports=4"])).folder, SwitchRun(params=parse_switch(["weights=3:1"])).folder,
    ]  # fmt: skip
    assert all(a != b for a, b in itertools.combinations(found, 2))
    assert all(f.name.startswith(("gemm-small", "link-x8", "switch-sw")) for f in found)


@pytest.mark.parametrize(
    ("settings", "file", "says"),
    [
        ((), None, "small"),
        (("dma.engines=8",), None, "small with dma.engines=8"),
        (("tensor.mx=false", "dma.engines=8"), None, "small with tensor.mx=false, dma.engines=8"),
        (("dma.engines=8", "name=mine"), "mine.toml", "mine.toml, small with dma.engines=8"),
        (("name=mine",), None, "mine, small"),
    ],
)
def test_the_title_names_it(settings: tuple[str, ...], file: str | None, says: str) -> None:
    cfg = load("small", settings)
    assert described(cfg.name, *changes(cfg), file) == says


def test_a_file_goes_out_from_its_nearest_configuration(tmp_path: Path) -> None:
    file = tmp_path / "wide.toml"
    file.write_text('base = "full"\n[hbm]\nlatency_ns = 300\n')
    assert changes(load(str(file))) == ("full", {"hbm.latency_ns": 300})
    assert changes(LINKS["x16"]) == ("x16", {})
