"""Launchers of the benches of a switch's inputs: buffer and routing table."""

import pytest

from rtl.contract.link_config import LINKS, LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.input.ingress import Ingress
from rtl.switch.routes import Routes
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

INGRESS = "verif.benches.switch.bench_ingress"
ROUTES = "verif.benches.switch.bench_routes"
READABLE = {"read_back": True}  # a table that shows its rows too


def _small(name: str, lanes: int) -> SwitchConfig:
    """Few queues and places, so that all of them fill."""
    return SwitchConfig(name=name, ports=4, link=LinkConfig(lanes=lanes, classes=2, shared_flits=8), length_cap_flits=7)


SMALL = _small("small_x8", 8)
CONFIGS = {
    "x8": SMALL,
    "x4": _small("small_x4", 4),
    "x16": _small("small_x16", 16),
    "16 ports": SwitchConfig(),
    "16 ports x4": SwitchConfig(name="x4", link=LINKS["x4"]),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", CONFIGS.values(), ids=CONFIGS)
def test_ingress(cfg: SwitchConfig, seed: int) -> None:
    must_pass("switch_ingress", INGRESS, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(Ingress))
def test_ingress_fault_is_noticed(fault: int) -> None:
    must_notice("switch_ingress", INGRESS, fault, SMALL)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", ["sw4", "sw20"])
def test_routes(cfg: str, seed: int) -> None:
    must_pass("switch_routes", ROUTES, seed, cfg, options=READABLE)


@pytest.mark.parametrize("fault", faults_of(Routes))
def test_routes_fault_is_noticed(fault: int) -> None:
    must_notice("switch_routes", ROUTES, fault, "sw4", options=READABLE)
