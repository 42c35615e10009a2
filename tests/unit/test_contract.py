"""Literal words, configurations and formats: what must not change by accident."""

import dataclasses
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from rtl.contract.access_pattern import PATTERN, AccessPattern, start_partition_rule
from rtl.contract.config import NAMED, ConfigError, load, named
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.formats import FORMATS, by_code
from rtl.contract.isa import INSTRUCTION, Cause, Opcode, Update, Wait
from rtl.contract.memmap import ADDRESS, Control, Space, address
from rtl.contract.rules import RULES
from rtl.contract.timing import STALLS, Engine, array_latency
from rtl.contract.words import Field, Word

# fmt: off
PATTERN_WORD = 0x0000_0001_0000_0003_FFE0_0020_0002_0008_FFFF_21_20_40_000123
INSTRUCTION_LINES = (  # bits 63:0 first
    0x0C82_0051_0000_0111, 0xFFFF_FFFF_0000_0007,
    0x8000_0000_0000_0FF1, 0x0000_0000_0000_0000,
    0xFFFF_2120_4000_0123, 0xFFE0_0020_0002_0008, 0x0000_0001_0000_0003,
    0x0000_0000_0000_0000, 0x0000_0000_0000_0000, 0x0000_0000_0000_0000,
    0x0001_0220_0000_0800, 0x0000_0001_0000_0200, 0x0000_0001_0000_0001,
    0x0123_4567_89AB_CDEF, 0x0000_0000_0000_0002, 0x8000_0000_0000_0000,
)
DESCRIPTOR_LINES = (
    0x0123_4567_89AB_CDEF, 0x0000_0100_0004_0010, 0x0000_0005_0000_0200,
    0xFFFF_F800_0000_0003, 0x0000_0004_0000_FFFF,
    0x0000_0000_0000_0004, 0x0000_0040_0000,
    0xFFFF_FFFF_0000_0001, 0x4000_0000_0000_FFFF,
    0x0000_0300_0000_0014, 0x7FFF_FFFF_0000_0002,
)
# fmt: on


def _lines(lines: tuple[int, ...]) -> int:
    return sum(line << 64 * n for n, line in enumerate(lines))


def _pattern() -> dict[str, int]:
    a = AccessPattern(
        space=1, dtype=2, partition_start=64, partition_count=32, offset=0x123,
        dims=((-1, 8), (2, 32), (-32, 3), (0, 1)),
    )  # fmt: skip
    return a.fields()


def test_the_access_pattern_word() -> None:
    assert PATTERN.pack(_pattern()) == PATTERN_WORD
    assert PATTERN.unpack(PATTERN_WORD) == {"reserved": 0, **_pattern()}


def test_the_instruction_word() -> None:
    dst = AccessPattern(
        space=2, dtype=0, partition_start=0, partition_count=32, offset=0x800, dims=((1, 512),)
    ).fields()
    fields = {
        "opcode": Opcode.MULTIPLY_MOVING, "accumulate": 1,
        "wait0": Wait.GE, "wait0_semaphore": 5, "wait0_value": 7,
        "wait1": Wait.EQ, "wait1_semaphore": 200, "wait1_value": -1,
        "update": Update.ADD, "update_semaphore": 255, "update_value": -(1 << 31),
        "imm0": 0x0123456789ABCDEF, "imm1": 2, "imm2": 1 << 63,
        **{f"src0_{k}": v for k, v in _pattern().items()}, **{f"dst_{k}": v for k, v in dst.items()},
    }  # fmt: skip
    word = INSTRUCTION.pack(fields)
    assert hex(word) == hex(_lines(INSTRUCTION_LINES))
    assert {k: v for k, v in INSTRUCTION.unpack(word).items() if v} == {k: v for k, v in fields.items() if v}
    assert INSTRUCTION.bytes == 128


def test_the_descriptor_word() -> None:
    fields = {
        "source": 0x0123456789ABCDEF, "destination": address(Space.SBUF, 0x40010),
        "row_bytes": 512, "class_": 5,
        "count0": 3, "source_step0": -2048, "destination_step0": 0x40000,
        "count1": 4, "source_step1": 0, "destination_step1": 64,
        "count2": 1, "source_step2": -1, "destination_step2": 1 << 46,
        "signal_address": address(Space.SEMAPHORES, 20), "signal_update": Update.SET, "signal_value": 2**31 - 1,
    }  # fmt: skip
    word = DESCRIPTOR.pack(fields)
    assert hex(word) == hex(_lines(DESCRIPTOR_LINES))
    assert {k: v for k, v in DESCRIPTOR.unpack(word).items() if v} == {k: v for k, v in fields.items() if v}
    assert DESCRIPTOR.bytes == 128


def test_the_address_word() -> None:
    assert address(Space.SBUF, 3 << 18 | 5) == 0x100_000C_0005
    assert address(Space.CONTROL, 0x8000, core_id=0x3FFFF) == 0x3FFF_F500_0000_8000
    assert ADDRESS.unpack(0x1A5D_9500_0000_8000) == {
        "offset": 0x8000, "space": 5, "core": 9, "chip": 13, "server": 0b100101, "rack": 0b0110, "zero": 0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="offset 1099511627776 does not fit"):
        address(Space.HBM, 1 << 40)


def test_words_refuse_what_does_not_fit() -> None:
    word = Word("w", 8, (Field("a", 3), Field("b", 4, signed=True)))
    assert word.pack(a=5, b=-8) == 0b1000_101 and word.unpack(0b1000_101) == {"a": 5, "b": -8}
    with pytest.raises(ValueError, match=r"w\.a = 8 does not fit in 3 bits \(0 to 7\)"):
        word.pack(a=8)
    with pytest.raises(ValueError, match="w has no field c"):
        word.pack(c=1)
    with pytest.raises(ValueError, match="more than its 8 bits"):
        Word("w", 8, (Field("a", 9),))


def test_codes_stay() -> None:
    assert {o.name: o.value for o in Opcode} == {
        "NOP": 0, "DMA_TRIGGER": 1, "DMA_COPY": 3, "LOAD_STATIONARY": 16, "MULTIPLY_MOVING": 17, "TENSOR_TRANSPOSE": 18,
        "TENSOR_COPY": 32, "TENSOR_TENSOR": 33,
        "TENSOR_SCALAR": 34, "SCALAR_TENSOR_TENSOR": 35, "TENSOR_REDUCE": 36, "TENSOR_SCAN": 37,
        "SELECT": 38, "COPY_PREDICATED": 39, "RANGE_SELECT": 40, "BN_STATS": 41, "BN_AGGR": 42, "RECIPROCAL": 43,
        "MEMSET": 44, "MAX8": 45, "FIND_INDEX8": 46, "MATCH_REPLACE8": 47, "TRANSPOSE": 48, "SHUFFLE": 49, "EXP": 50,
        "QUANTIZE_MX": 51,
        "ACTIVATION": 64, "LOAD_TABLE": 65, "SCALAR_COPY": 66, "SCALAR_AFFINE": 67,
        "GP_LOAD": 96, "GP_RUN": 97, "GP_STORE": 98,
    }  # fmt: skip
    assert [c.name for c in sorted(Cause)] == [
        "NONE", "ILLEGAL_OPCODE", "ILLEGAL_DTYPE", "BAD_SPACE", "BAD_PARTITION", "BAD_PATTERN", "MISALIGNED",
        "OUT_OF_RANGE", "BAD_RING", "NO_ROUTE", "BAD_DESCRIPTOR", "BUS_ERROR", "BAD_SEMAPHORE",
        "BAD_OPERATOR", "NOT_LOADED", "BANK_CONFLICT", "LOAD_PENDING", "TAGS",
        "GP_TRAP", "GP_WATCHDOG", "GP_EXIT", "GP_NO_IMAGE", "GP_CORES", "GP_DMA", "BAD_SEQUENCE", "ENDLESS_LOOP",
        "BAD_SIZE", "BAD_INDEX",
    ]  # fmt: skip
    assert [s.name for s in Space] == ["HBM", "SBUF", "PSUM", "SEMAPHORES", "GPSIMD", "CONTROL"]
    assert (Control.QUEUE, Control.RING, Control.ENGINE, Control.SEMAPHORE) == (0x1000, 0x2000, 0x4000, 0x6000)
    assert set(RULES) == set(Opcode)


@pytest.mark.parametrize(
    ("count", "starts"),
    [(0, ()), (1, (0, 32, 64, 96)), (32, (0, 32, 64, 96)), (33, (0, 64)), (64, (0, 64)), (65, (0,)), (128, (0,))]
    + [(129, ())],
)
def test_start_partitions_are_those_of_the_architecture_guide(count: int, starts: tuple[int, ...]) -> None:
    assert tuple(s for s in range(160) if start_partition_rule(s, count, 128)) == starts


def test_every_engine_names_its_stalls_once() -> None:
    for engine in Engine:
        assert len(set(STALLS[engine])) == len(STALLS[engine]) <= 14, "a state has 4 bits"
    assert array_latency(named("full").tensor) == 384


_ML = {
    "bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32, "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3": ml_dtypes.float8_e4m3, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


@pytest.mark.parametrize("name", _ML)
def test_float_formats_agree_with_numpy_and_ml_dtypes(name: str) -> None:
    fmt = FORMATS[name]
    info = ml_dtypes.finfo(_ML[name])
    assert (fmt.bits, fmt.exponent, fmt.mantissa) == (info.bits, info.nexp, info.nmant)
    # The smallest normal number is 2^(1 - bias); E8M0 has no zero exponent to spare.
    assert float(info.smallest_normal) == 2.0 ** ((1 if fmt.signed else 0) - fmt.bias)
    codes = np.array([0x7F800000, 0x7FC00000], np.uint32)
    if fmt.bits <= 16:
        codes = np.arange(1 << fmt.bits, dtype=np.uint32)
    width = {4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}[fmt.bits]
    values = codes.astype(width).view(_ML[name]).astype(np.float32)
    assert bool(np.isinf(values).any()) == fmt.infinities
    assert bool(np.isnan(values).any()) == fmt.nans


def test_formats_have_codes_in_order() -> None:
    assert [f.code for f in FORMATS.values()] == list(range(15)) and by_code(7).name == "e2m1"
    for name, fmt in FORMATS.items():
        if fmt.integer:
            info = np.iinfo(name)
            assert (fmt.bits, fmt.signed) == (info.bits, info.min < 0)
    with pytest.raises(ValueError, match="dtype code 15 names no format"):
        by_code(15)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("tensor.rows=100", "tensor.rows must be a power of two from 8 to 128, not 100"),
        ("tensor.rows=64", r"tensor.rows must be at most partitions \(32\), not 64"),
        ("tensor.rws=32", "a setting names tensor.rws, which is no field"),
        ("tenser.rows=32", "a setting names 'tenser', which is no field"),
        ("tensor=32", "a setting sets tensor to 32; set a field of it"),
        ("partitions", "a setting is written section.key=value, not 'partitions'"),
        ("partitions=many", "partitions must be a whole number, not 'many'"),
        ("sbuf.banks=3", "sbuf.banks must be a power of two from 2 to 16, not 3"),
        ("sbuf.partition_bytes=65544", r"must be a multiple of 8 \* sbuf.banks \(32\), not 65544"),
        ("dma.engines=2", "dma.engines must be at least 4"),
        ("dma.engines=32", "dma.engines must be a power of two from 1 to 16, not 32"),
        ("dma.burst_bytes=4096 ", ""),
        ("dma.buffer_bytes=1024", r"dma.burst_bytes must be at most half of dma.buffer_bytes \(512\), not 1024"),
        ("hbm.bytes_per_cycle=0", "hbm.bytes_per_cycle must be from 1 to 1024, not 0"),
        ("vector.clock_mhz=2500", r"vector.clock_mhz must be at most tensor.clock_mhz \(2400\), not 2500"),
        ("issue.queue_depth=3", "issue.queue_depth must be a power of two from 2 to 64, not 3"),
        ("issue.semaphores=512", "issue.semaphores must be a power of two from 16 to 256, not 512"),
        ("tensor.nvfp4=true", ""),
        ("tensor.mx=0", ""),
        ("tensor.mx=maybe", "tensor.mx must be true or false, not 'maybe'"),
        ("psum.banks=16", ""),
        ("psum.bank_bytes=64", r"tensor.moving_max must fit in a PSUM partition \(128 FP32 columns\), not 512"),
    ],
)
def test_impossible_configurations_get_a_sentence(setting: str, sentence: str) -> None:
    if not sentence:
        assert load("small", [setting]).hash != named("small").hash
        return
    with pytest.raises(ConfigError, match=sentence) as caught:
        load("small", [setting])
    assert "\n" not in str(caught.value)


def test_nvfp4_needs_the_sums_of_products() -> None:
    with pytest.raises(ConfigError, match="tensor.nvfp4 needs tensor.mx"):
        load("tiny", ["tensor.nvfp4=true", "tensor.mx=false"])
    assert not load("tiny", ["tensor.mx=false"]).tensor.mx


@pytest.mark.parametrize("name", ["a", "trn2-x_1.5", "8" * 64])
def test_names_of_configurations(name: str) -> None:
    assert dataclasses.replace(named("tiny"), name=name).name == name


@pytest.mark.parametrize("name", ["x/../../../..", "", ".", "..", ".x", "a b", "a/b", "9" * 65, "\u00e9", "a\n"])
def test_names_that_could_lead_out_of_a_folder_get_a_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name must be 1 to 64") as caught:
        dataclasses.replace(named("tiny"), name=name)
    assert "\n" not in str(caught.value)
    file = tmp_path / "mine.toml"
    file.write_text(f'base = "tiny"\nname = {json.dumps(name)}\n')
    with pytest.raises(ConfigError, match="name must be 1 to 64"):
        load(str(file))


def test_the_name_of_a_file_obeys_the_same_rule(tmp_path: Path) -> None:
    file = tmp_path / "my core.toml"
    file.write_text('base = "tiny"\n')
    with pytest.raises(ConfigError, match="name must be 1 to 64"):
        load(str(file))


def test_settings_apply_together() -> None:
    config = load("small", ["tensor.rows=64", "tensor.cols=64", "partitions=64"])
    assert (config.partitions, config.tensor.rows) == (64, 64)


def test_configuration_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "small"\npartitions = 64\n[sbuf]\nbanks = 8\n')
    config = load(str(file), ["tensor.rows=64"])
    assert (config.name, config.partitions, config.sbuf.banks, config.tensor.rows) == ("mine", 64, 8, 64)
    for text, sentence in (
        ("base = ", "is not valid TOML"),
        ("partitions = 8", 'needs a line base = "NAME"'),
        ('base = "big"', "there is no configuration 'big'; the named ones are tiny, small, full, trn2, trn3, trn4"),
        ('base = "small"\n[sbuf]\nbank = 8', "names sbuf.bank, which is no field; fields of sbuf are partition_bytes"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=sentence):
            load(str(file))
    with pytest.raises(ConfigError, match="there is no configuration file"):
        load(str(tmp_path / "none.toml"))


def test_hashes_name_values_not_names() -> None:
    assert len({c.hash for c in NAMED.values()}) == len(NAMED) - 1
    assert named("trn3").hash == named("full").hash
    assert dataclasses.replace(named("small"), name="other").hash == named("small").hash
    assert named("full").latency_cycles == 480
