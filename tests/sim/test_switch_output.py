"""Launchers of the benches of a switch's output side, crossbar, bypass and registers."""

import pytest

from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.bypass import Bypass
from rtl.switch.crossbar import Crossbar
from rtl.switch.output.egress import Egress
from rtl.switch.output.output_buffer import OutputBuffer
from rtl.switch.port_registers import PortRegisters
from rtl.switch.registers import Registers
from rtl.switch.responder import Responder
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

EGRESS = "verif.benches.switch.bench_egress"
PORT_REGISTERS = "verif.benches.switch.bench_port_registers"
REGISTERS = "verif.benches.switch.bench_registers"
BYPASS = "verif.benches.switch.bench_bypass"
CROSSBAR = "verif.benches.switch.bench_crossbar"
BUFFER = "verif.benches.switch.bench_output_buffer"
RESPONDER = "verif.benches.switch.bench_responder"

SMALL = LinkConfig(classes=2, shared_flits=12, window_flits=20)
SLOW = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=4)
WIDE = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=16)
LINKS = pytest.mark.parametrize("cfg", [SMALL, SLOW, WIDE], ids=["x8", "x4", "x16"])
FOUR, FOUR_SLOW, FOUR_WIDE = (SwitchConfig(ports=4, link=link) for link in (SMALL, SLOW, WIDE))
SWITCHES = pytest.mark.parametrize("cfg", [FOUR, FOUR_SLOW, FOUR_WIDE], ids=["x8", "x4", "x16"])


@pytest.mark.parametrize("seed", SEEDS)
@LINKS
def test_egress(cfg: LinkConfig, seed: int) -> None:
    must_pass("switch_egress", EGRESS, seed, cfg)


def test_egress_of_a_whole_link() -> None:
    must_pass("switch_egress", EGRESS, 1, "x8")


@pytest.mark.parametrize("fault", faults_of(Egress))
def test_egress_fault_is_noticed(fault: int) -> None:
    must_notice("switch_egress", EGRESS, fault, SMALL)


@pytest.mark.parametrize("seed", SEEDS)
@LINKS
def test_output_buffer(cfg: LinkConfig, seed: int) -> None:
    must_pass("switch_output_buffer", BUFFER, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(OutputBuffer))
def test_output_buffer_fault_is_noticed(fault: int) -> None:
    must_notice("switch_output_buffer", BUFFER, fault, SMALL)


@pytest.mark.parametrize("seed", SEEDS)
@SWITCHES
def test_bypass(cfg: SwitchConfig, seed: int) -> None:
    must_pass("switch_bypass", BYPASS, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(Bypass))
def test_bypass_fault_is_noticed(fault: int) -> None:
    must_notice("switch_bypass", BYPASS, fault, FOUR)


@pytest.mark.parametrize("seed", SEEDS)
def test_crossbar(seed: int) -> None:
    must_pass("switch_crossbar", CROSSBAR, seed, FOUR)


@pytest.mark.parametrize("fault", faults_of(Crossbar))
def test_crossbar_fault_is_noticed(fault: int) -> None:
    must_notice("switch_crossbar", CROSSBAR, fault, FOUR)


SHORT = {"count_bits": 14}  # counters that reach their end
FEW = {"count_bits": 10}


@pytest.mark.parametrize("seed", SEEDS)
def test_port_registers(seed: int) -> None:
    must_pass("switch_port_registers", PORT_REGISTERS, seed, SMALL, options=SHORT)


def test_port_registers_as_they_are() -> None:
    must_pass("switch_port_registers", PORT_REGISTERS, 1, SMALL)


@pytest.mark.parametrize("fault", faults_of(PortRegisters))
def test_port_registers_fault_is_noticed(fault: int) -> None:
    must_notice("switch_port_registers", PORT_REGISTERS, fault, SMALL, options=SHORT)


@pytest.mark.parametrize("seed", SEEDS)
def test_registers(seed: int) -> None:
    must_pass("switch_registers", REGISTERS, seed, FOUR, options=FEW)


def test_registers_as_they_are() -> None:
    must_pass("switch_registers", REGISTERS, 1, FOUR)


@pytest.mark.parametrize("fault", faults_of(Registers))
def test_registers_fault_is_noticed(fault: int) -> None:
    must_notice("switch_registers", REGISTERS, fault, FOUR, options=FEW)


TIGHT = LinkConfig(classes=2, shared_flits=8)
TIGHT_WIDE = LinkConfig(classes=2, shared_flits=8, lanes=16)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("link", [TIGHT, TIGHT_WIDE], ids=["x8", "x16"])
def test_responder(link: LinkConfig, seed: int) -> None:
    must_pass("switch_responder", RESPONDER, seed, SwitchConfig(ports=4, link=link))


@pytest.mark.parametrize("fault", faults_of(Responder))
def test_responder_fault_is_noticed(fault: int) -> None:
    must_notice("switch_responder", RESPONDER, fault, SwitchConfig(ports=4, link=TIGHT))
