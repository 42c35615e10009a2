"""Launchers of the benches of the flit codec, and of the proof that its two forms are one."""

import pytest

from rtl.link.codec.decoder import Decoder
from rtl.link.codec.encoder import Encoder
from verif.benches.link.codec_lockstep_top import CodecLockstepTop
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

ENCODER = "verif.benches.link.bench_encoder"
DECODER = "verif.benches.link.bench_decoder"
LOCKSTEP = "verif.benches.link.bench_codec_lockstep"
LOW_FIRST = {"order": "low_first"}


@pytest.mark.parametrize("seed", SEEDS)
def test_encoder(seed: int) -> None:
    must_pass("flit_encoder", ENCODER, seed, "x8")


@pytest.mark.parametrize("fault", faults_of(Encoder))
def test_encoder_fault_is_noticed(fault: int) -> None:
    hangs = fault == 4  # a beat is lost, and the bench waits for it
    must_notice("flit_encoder", ENCODER, fault, "x8", hangs=hangs)


@pytest.mark.parametrize("seed", SEEDS)
def test_decoder(seed: int) -> None:
    must_pass("flit_decoder", DECODER, seed, "x8")


@pytest.mark.parametrize("fault", faults_of(Decoder))
def test_decoder_fault_is_noticed(fault: int) -> None:
    must_notice("flit_decoder", DECODER, fault, "x8")


@pytest.mark.parametrize(("top", "bench"), [("flit_encoder", ENCODER), ("flit_decoder", DECODER)])
def test_codec_at_x16(top: str, bench: str) -> None:
    must_pass(top, bench, 1, "x16", planted=False)


@pytest.mark.parametrize(("top", "bench"), [("flit_encoder", ENCODER), ("flit_decoder", DECODER)])
def test_codec_with_the_bytes_of_the_crc_turned(top: str, bench: str) -> None:
    must_pass(top, bench, 1, "x8", planted=False, options=LOW_FIRST)


def test_forms_in_lockstep_with_the_bytes_of_the_crc_turned() -> None:
    must_pass("codec_lockstep", LOCKSTEP, 1, "x8", planted=False, options=LOW_FIRST)


@pytest.mark.parametrize("seed", SEEDS)
def test_forms_in_lockstep(seed: int) -> None:
    must_pass("codec_lockstep", LOCKSTEP, seed, "x8")


def test_forms_in_lockstep_at_x16() -> None:
    must_pass("codec_lockstep", LOCKSTEP, 1, "x16", planted=False)


@pytest.mark.parametrize("fault", faults_of(CodecLockstepTop))
def test_lockstep_notices_fault_of_native_form(fault: int) -> None:
    must_notice("codec_lockstep", LOCKSTEP, fault, "x8")
