"""Every code under every dtype to its element: of the formats of elements their own, of any other that of E4M3FN."""

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
FORMAT_OF = {FORMATS[name].code: name for name in NAMES}
KINDS = ("zero", "subnormal", "normal", "infinity", "nan")
NONE = ("e4m3fn infinity", "e2m1 infinity", "e2m1 nan")  # not in these formats
coverage = Coverage(
    "unpack_element",
    [f"{n} {k}" for n in NAMES for k in KINDS if f"{n} {k}" not in NONE] + ["don't care above E2M1", "another dtype"],
)


def kind_of(word: int, name: str) -> str:
    """The bin of an element."""
    exponent, significand = word >> 4 & 31, word & 15
    if exponent >= 30:
        return f"{name} {('infinity', 'nan')[exponent - 30]}"
    return f"{name} {'zero' if significand == 0 else 'normal' if significand >= 8 else 'subnormal'}"


@cocotb.test()
async def unpacks_every_code(dut: Any) -> None:
    """256 codes under each of 16 dtypes, in an order that mixes them."""
    bench = Bench(dut)
    await bench.start()
    codes = np.arange(256, dtype=np.uint8)
    wanted = {name: element_words(codes, name).tolist() for name in NAMES}
    settle = Timer(1, "ns")
    for code in bench.rng.permutation(256).tolist():
        for dtype in bench.rng.permutation(16).tolist():
            name = FORMAT_OF.get(dtype, "e4m3fn")
            dut.bits.value = code
            dut.dtype.value = dtype
            await settle
            seen = int(dut.element.value)
            assert seen == wanted[name][code], (
                f"dtype {dtype}, {name} {code:#04x}: is {seen:#05x}, should be {wanted[name][code]:#05x}"
            )
            coverage.hit(kind_of(seen, name))
            coverage.when(name == "e2m1" and code > 15, "don't care above E2M1")
            coverage.when(dtype not in FORMAT_OF, "another dtype")
    coverage.require_all()
