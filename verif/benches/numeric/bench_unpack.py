"""Every code of the 16-bit and 8-bit formats, and hard FP32 codes as TF32, to their operands."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS
from verif.agents.bench import Bench
from verif.agents.operands import operand_words
from verif.agents.values import FLAVOURS, random_codes
from verif.bench import EVERY, Run
from verif.golden.numeric import decode

RUNS = (Run("unpack", seeds=(1,), faults=EVERY),)


async def check(dut: Any, fmt: str, codes: NDArray[np.uint32], unused: int) -> None:
    """These codes of a format; bits from `unused` on do not count."""
    bench = Bench(dut)
    await bench.start()
    wanted = operand_words(decode(codes, fmt)).tolist()
    dut.dtype.value = FORMATS[fmt].code
    settle = Timer(1, "ns")
    dont_care = (bench.rng.integers(0, 1 << 32, len(codes)) >> unused << unused).tolist()
    for code, above, want in zip(codes.tolist(), dont_care, wanted, strict=True):
        dut.bits.value = code | above
        await settle
        seen = int(dut.operand.value)
        assert seen == want, f"{fmt} {code:#06x}: is {seen:#08x}, should be {want:#08x}"


@cocotb.test()
async def unpacks_every_bf16_code(dut: Any) -> None:
    """65,536 codes."""
    await check(dut, "bf16", np.arange(1 << 16, dtype=np.uint32), 16)


@cocotb.test()
async def unpacks_every_fp16_code(dut: Any) -> None:
    """65,536 codes."""
    await check(dut, "fp16", np.arange(1 << 16, dtype=np.uint32), 16)


@cocotb.test()
async def unpacks_every_8_bit_code(dut: Any) -> None:
    """256 codes of each format."""
    for fmt in ("e4m3fn", "e4m3", "e5m2"):
        await check(dut, fmt, np.arange(1 << 8, dtype=np.uint32), 8)


@cocotb.test()
async def rounds_to_tf32(dut: Any) -> None:
    """FP32 codes of every flavour, ties of both parities and their neighbours in every binade."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    hard = [random_codes(rng, (4000,), "fp32", flavour) for flavour in FLAVOURS]
    fields = np.repeat(np.arange(256, dtype=np.uint32), 24) << np.uint32(23)
    places = rng.integers(0, 1 << 10, len(fields)).astype(np.uint32) << np.uint32(13)
    ends = np.resize(np.array([0xFFF, 0x1000, 0x1001, 0, 1, 0x1FFF], np.uint32), len(fields))
    hard += [fields | places | ends, fields | np.uint32(0x7FE000) | ends, fields | ends]
    await check(dut, "tf32", np.concatenate(hard), 32)
