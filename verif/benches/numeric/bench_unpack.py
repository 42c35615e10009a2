"""Every BF16 and every FP16 code to its operand."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer

from rtl.contract.formats import FORMATS
from verif.agents.bench import Bench
from verif.agents.operands import operand_words
from verif.golden.numeric import decode


async def check(dut: Any, fmt: str) -> None:
    """All codes of one format."""
    await Bench(dut).start()
    codes = np.arange(1 << 16, dtype=np.uint16)
    wanted = operand_words(decode(codes, fmt)).tolist()
    dut.dtype.value = FORMATS[fmt].code
    settle = Timer(1, "ns")
    for code in range(1 << 16):
        dut.bits.value = code
        await settle
        seen = int(dut.operand.value)
        assert seen == wanted[code], f"{fmt} {code:#06x}: is {seen:#08x}, should be {wanted[code]:#08x}"


@cocotb.test()
async def unpacks_every_bf16_code(dut: Any) -> None:
    """65,536 codes."""
    await check(dut, "bf16")


@cocotb.test()
async def unpacks_every_fp16_code(dut: Any) -> None:
    """65,536 codes."""
    await check(dut, "fp16")
