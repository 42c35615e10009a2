"""A run says which variant it was, and no two variants share a folder."""

import itertools
import re
from pathlib import Path

import pytest

from firmware.workloads import find_workload
from rtl.contract.config import ConfigError, load
from rtl.contract.link_config import LINKS
from sim.errors import PlexusError
from sim.run.variant import changes, described
from sim.systems.core.run import Run
from sim.systems.link.run import LinkRun, parse_link
from sim.systems.link.system import LinkSystem
from sim.systems.switch.params import SwitchRun, parse_switch
from sim.systems.system import Asked


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


def link(*params: str, config: str | None = None, settings: tuple[str, ...] = ()) -> LinkRun:
    asked = Asked(workload="link", params=params, config=config, settings=settings)
    return LinkSystem().resolve(asked)


def test_a_link_is_a_configuration_with_changes() -> None:
    assert link().cfg == LINKS["x8"] and link(config="x4").cfg == LINKS["x4"] and link("lanes=16").cfg == LINKS["x16"]
    assert link("lanes=2", config="x8").cfg == LINKS["x2"]  # a parameter is nearer
    narrow = link(settings=("window_flits=32", "weights=3:1:1:1:1:1:1:1"))
    assert (narrow.cfg.window_flits, narrow.cfg.weights[0], narrow.cfg.shared_flits) == (32, 3, 44)
    assert link("window=16", "weights=2:5", settings=("window_flits=32",)).cfg.window_flits == 16
    assert link(settings=("shared_flits=7",)).cfg.shared_flits == 7
    assert link("shared_flits=9", settings=("shared_flits=7",)).cfg.shared_flits == 9
    assert narrow.folder.name.startswith("link-x8-") and narrow.folder != link().folder


@pytest.mark.parametrize(
    ("params", "config", "settings", "says"),
    [
        ((), "small", (), "small is no configuration of a link; there are x1, x2, x4, x8, x16"),
        ((), "sw4", (), "sw4 is no configuration of a link"),
        ((), None, ("lanes=3",), "link.lanes must be 1, 2, 4, 8 or 16, not 3"),
        (("lanes=4",), None, ("lanes=8",), "lanes is 4 as a parameter and 8 as a field"),
        ((), None, ("windw=3",), "windw is no field"),
    ],
)
def test_a_wrong_link_is_a_sentence(
    params: tuple[str, ...], config: str | None, settings: tuple[str, ...], says: str
) -> None:
    with pytest.raises((PlexusError, ConfigError), match=re.escape(says)):
        link(*params, config=config, settings=settings)
