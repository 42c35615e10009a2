"""Every code of every element format to its element, with don't-care bits above those of E2M1."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer

from rtl.contract.formats import FORMATS
from verif.agents.bench import Bench
from verif.agents.elements import element_words
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

RUNS = (Run("unpack_element", seeds=(1,), faults=EVERY),)

NAMES = ("e4m3fn", "e4m3", "e5m2", "e2m1")
KINDS = ("zero", "subnormal", "normal", "infinity", "nan")
NONE = ("e4m3fn infinity", "e2m1 infinity", "e2m1 nan")  # not in these formats
coverage = Coverage(
    "unpack_element",
    [f"{n} {k}" for n in NAMES for k in KINDS if f"{n} {k}" not in NONE] + ["don't care above E2M1"],
)


def kind_of(word: int, name: str) -> str:
    """The bin of an element."""
    exponent, significand = word >> 4 & 31, word & 15
    if exponent >= 30:
        return f"{name} {('infinity', 'nan')[exponent - 30]}"
    return f"{name} {'zero' if significand == 0 else 'normal' if significand >= 8 else 'subnormal'}"


@cocotb.test()
async def unpacks_every_code(dut: Any) -> None:
    """256 codes of each format, in an order that mixes the formats."""
    bench = Bench(dut)
    await bench.start()
    codes = np.arange(256, dtype=np.uint8)
    wanted = {name: element_words(codes, name).tolist() for name in NAMES}
    settle = Timer(1, "ns")
    for code in bench.rng.permutation(256).tolist():
        for name in NAMES:
            dut.bits.value = code
            dut.dtype.value = FORMATS[name].code
            await settle
            seen = int(dut.element.value)
            assert seen == wanted[name][code], (
                f"{name} {code:#04x}: is {seen:#05x}, should be {wanted[name][code]:#05x}"
            )
            coverage.hit(kind_of(seen, name))
            coverage.when(name == "e2m1" and code > 15, "don't care above E2M1")
    coverage.require_all()
