"""Launchers of the benches of the number hardware. Conversions are in test_convert.py, dot products in
test_numeric_mx.py."""

import pytest

from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.add_lanes import Fp32AddLanes
from rtl.numeric.fp32.add_pipelined import Fp32AddPipelined
from rtl.numeric.fp32.alu import Alu
from rtl.numeric.fp32.bf16_round import Bf16Round
from rtl.numeric.fp32.multiply_comb import Fp32MultiplyComb
from rtl.numeric.fp32.partial_sums import PartialSums
from rtl.numeric.fp32.reciprocal import Reciprocal
from rtl.numeric.fp32.round_bits import RoundBits
from rtl.numeric.functions.activation_unit import ActivationUnit
from rtl.numeric.functions.exp import Exp
from rtl.numeric.pe.code_mac import Bf16Mac, Fp16Mac
from rtl.numeric.pe.halves import Halves
from rtl.numeric.pe.mac import Mac
from rtl.numeric.pe.unpack import Unpack
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

ACTIVATION = "verif.benches.numeric.bench_activation_unit"
ADD = "verif.benches.numeric.bench_add_pipelined"
ALU = "verif.benches.numeric.bench_alu"
ADD_LANES = "verif.benches.numeric.bench_add_lanes"
CODE_MAC = "verif.benches.numeric.bench_code_mac"
EXP = "verif.benches.numeric.bench_exp"
MUL = "verif.benches.numeric.bench_multiply_comb"
PARTIAL_SUMS = "verif.benches.numeric.bench_partial_sums"
RECIPROCAL = "verif.benches.numeric.bench_reciprocal"
SUM = "verif.benches.numeric.bench_add_comb"
MAC = "verif.benches.numeric.bench_mac"
HALVES = "verif.benches.numeric.bench_halves"
BF16_ROUND = "verif.benches.numeric.bench_bf16_round"
ROUND_BITS = "verif.benches.numeric.bench_round_bits"
UNPACK = "verif.benches.numeric.bench_unpack"


@pytest.mark.parametrize("seed", SEEDS)
def test_fp32_add(seed: int) -> None:
    must_pass("fp32_add", ADD, seed)


@pytest.mark.parametrize("fault", faults_of(Fp32AddPipelined))
def test_fp32_add_fault_is_noticed(fault: int) -> None:
    must_notice("fp32_add", ADD, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_mac(seed: int) -> None:
    must_pass("mac", MAC, seed)


@pytest.mark.parametrize("fault", faults_of(Mac))
def test_mac_fault_is_noticed(fault: int) -> None:
    must_notice("mac", MAC, fault)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("top", ["bf16_mac", "fp16_mac"])
def test_code_mac(top: str, seed: int) -> None:
    must_pass(top, CODE_MAC, seed)


@pytest.mark.parametrize("fault", faults_of(Bf16Mac))
def test_bf16_mac_fault_is_noticed(fault: int) -> None:
    must_notice("bf16_mac", CODE_MAC, fault)


@pytest.mark.parametrize("fault", faults_of(Fp16Mac))
def test_fp16_mac_fault_is_noticed(fault: int) -> None:
    must_notice("fp16_mac", CODE_MAC, fault)


def test_unpack_of_every_code() -> None:
    must_pass("unpack", UNPACK, 1)


@pytest.mark.parametrize("fault", faults_of(Unpack))
def test_unpack_fault_is_noticed(fault: int) -> None:
    must_notice("unpack", UNPACK, fault)


def test_halves_of_fp32() -> None:
    must_pass("halves", HALVES, 1)


@pytest.mark.parametrize("fault", faults_of(Halves))
def test_halves_fault_is_noticed(fault: int) -> None:
    must_notice("halves", HALVES, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_of_sums_to_bf16(seed: int) -> None:
    must_pass("bf16_round", BF16_ROUND, seed)


@pytest.mark.parametrize("fault", faults_of(Bf16Round))
def test_bf16_round_fault_is_noticed(fault: int) -> None:
    must_notice("bf16_round", BF16_ROUND, fault)


def test_random_bits_of_sums() -> None:
    must_pass("round_bits", ROUND_BITS, 1)


@pytest.mark.parametrize("fault", faults_of(RoundBits))
def test_round_bits_fault_is_noticed(fault: int) -> None:
    must_notice("round_bits", ROUND_BITS, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_forms_of_adders_in_lockstep(seed: int) -> None:
    must_pass("add_lanes", ADD_LANES, seed)


@pytest.mark.parametrize("fault", faults_of(Fp32AddLanes))
def test_lockstep_notices_fault_of_native_adders(fault: int) -> None:
    must_notice("add_lanes", ADD_LANES, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_exp(seed: int) -> None:
    must_pass("exp", EXP, seed)


@pytest.mark.parametrize("fault", faults_of(Exp))
def test_exp_fault_is_noticed(fault: int) -> None:
    must_notice("exp", EXP, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_fp32_sum(seed: int) -> None:
    must_pass("fp32_sum", SUM, seed)


@pytest.mark.parametrize("fault", faults_of(Fp32AddComb))
def test_fp32_sum_fault_is_noticed(fault: int) -> None:
    must_notice("fp32_sum", SUM, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_fp32_product(seed: int) -> None:
    must_pass("fp32_product", MUL, seed)


@pytest.mark.parametrize("fault", faults_of(Fp32MultiplyComb))
def test_fp32_product_fault_is_noticed(fault: int) -> None:
    must_notice("fp32_product", MUL, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_activation_unit(seed: int) -> None:
    must_pass("activation", ACTIVATION, seed)


@pytest.mark.parametrize("fault", faults_of(ActivationUnit))
def test_activation_unit_fault_is_noticed(fault: int) -> None:
    must_notice("activation", ACTIVATION, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_alu(seed: int) -> None:
    must_pass("alu", ALU, seed)


@pytest.mark.parametrize("fault", faults_of(Alu))
def test_alu_fault_is_noticed(fault: int) -> None:
    must_notice("alu", ALU, fault)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("slots", [1, 4])
def test_partial_sums(slots: int, seed: int) -> None:
    must_pass("partial_sums", PARTIAL_SUMS, seed, options={"slots": slots})


@pytest.mark.parametrize("fault", faults_of(PartialSums))
def test_partial_sums_fault_is_noticed(fault: int) -> None:
    must_notice("partial_sums", PARTIAL_SUMS, fault, options={"slots": 4})


@pytest.mark.parametrize("seed", SEEDS)
def test_reciprocal(seed: int) -> None:
    must_pass("reciprocal", RECIPROCAL, seed)


@pytest.mark.parametrize("fault", faults_of(Reciprocal))
def test_reciprocal_fault_is_noticed(fault: int) -> None:
    must_notice("reciprocal", RECIPROCAL, fault)
