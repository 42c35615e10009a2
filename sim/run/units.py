"""Units that `plexus eval` pushes arrays through, by the names of their arrays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION, load_words
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS, MX_BLOCK, MX_EMAX
from rtl.contract.isa import REDUCTIONS, Function, ScaleRule
from rtl.contract.link import FLIT_BYTES, FLIT_INFO_BYTES
from sim.errors import PlexusError

__all__ = ["UNITS", "Unit", "find_unit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A top of fixed LATENCY whose ports are the arrays.

    inputs, outputs: array name (= port) to NumPy dtype of the bit patterns; "bits:NAME" means the dtype
    of the format that the string NAME names. shapes: trailing axes of an array, where it has some.
    strings: name (= port) of a text to what may be said and the code the port gets. defaults: what an
    absent array or text is; a mapping if it depends on the first text. limits: largest value of an array
    whose port is narrower than its dtype. before: values of ports (given the texts) that go through the unit
    before all else. rows: each row of the first array, of any length, gives one element. refusal: what is wrong
    with the texts together; empty if nothing is.
    """

    name: str
    top: str
    doc: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    strings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    defaults: Mapping[str, int | str | Mapping[str, int]] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    rows: bool = False
    flits: bool = False
    before: Callable[[Mapping[str, str], Config], Mapping[str, np.ndarray]] | None = None
    refusal: Callable[[Mapping[str, str]], str] | None = None

    def dtype(self, array: str, strings: Mapping[str, str]) -> str:
        """NumPy dtype of an array, given the texts."""
        kind = {**self.inputs, **self.outputs}[array]
        by, _, text = kind.partition("bits:")
        return f"uint{max(8, FORMATS[strings[text]].bits)}" if text else by

    def default(self, array: str, strings: Mapping[str, str]) -> int:
        """What an absent array holds."""
        value = self.defaults[array]
        if isinstance(value, Mapping):
            return value.get(next(iter(strings.values())), 0)
        return int(value)

    def usage(self) -> str:
        """Its arrays in one line."""
        given = [f"{n} {_short(k)}" for n, k in self.inputs.items()]
        given += [f"{n} ({_some(words)})" for n, words in self.strings.items()]
        return f"{', '.join(given)} -> {', '.join(f'{n} {_short(k)}' for n, k in self.outputs.items())}"


def _some(words: Mapping[str, int]) -> str:
    first = list(words)[:6]
    return ", ".join(first) if len(words) <= len(first) else f"{', '.join(first)}, ...: {len(words)} words"


def _short(kind: str) -> str:
    return kind.replace("uint", "u") if kind.startswith("uint") else f"bits of {kind.partition(':')[2]}"


_MAC = {"a": "uint16", "b": "uint16", "acc": "uint32"}
_CODES = {name: fmt.code for name, fmt in FORMATS.items()}
_OUT = {"out": "uint32"}
_FUNCTIONS = {f.name.lower(): int(f) for f in Function} | {"gelu_erf": int(Function.GELU)}


_ELEMENTS = {name: FORMATS[name].code for name in ("e4m3fn", "e5m2", "e2m1", "e4m3")}


def _mixed(strings: Mapping[str, str]) -> str:
    """The two E4M3 do not meet: their codes from 0x78 on mean different things."""
    wrong = {strings["fmt_a"], strings["fmt_b"]} == {"e4m3", "e4m3fn"}
    return "e4m3 and e4m3fn are not mixed in a dot product: give both sides the same of the two" if wrong else ""


def _table(strings: Mapping[str, str], cfg: Config) -> dict[str, np.ndarray]:
    """The table of a function, a word a cycle; nothing for one that needs none."""
    function = Function(_FUNCTIONS[strings["func"]])
    words = load_words([function.name.lower()], cfg.scalar.table_rows) if function >= FIRST_TABLE_FUNCTION else []
    return {
        "load_valid": np.ones(len(words), np.uint8),
        "load_address": np.array([address for address, _ in words], np.uint32),
        "load_word": np.array([word for _, word in words], np.uint32),
    }


UNITS: dict[str, Unit] = {
    u.name: u
    for u in (
        Unit(
            name="bf16_mac",
            top="bf16_mac",
            doc="BF16 fused multiply-add into FP32",
            inputs=_MAC,
            outputs=_OUT,
        ),
        Unit(
            name="fp16_mac",
            top="fp16_mac",
            doc="FP16 fused multiply-add into FP32",
            inputs=_MAC,
            outputs=_OUT,
        ),
        Unit(
            name="fp32_add",
            top="fp32_add",
            doc="FP32 addition",
            inputs={"a": "uint32", "b": "uint32"},
            outputs=_OUT,
        ),
        Unit(
            name="exp",
            top="exp",
            doc="exp(x - m) of FP32 codes",
            inputs={"x": "uint32", "m": "uint32"},
            outputs=_OUT,
        ),
        Unit(
            name="activation",
            top="activation",
            doc="func(x * scale + bias) of FP32 codes",
            inputs={"x": "uint32", "scale": "uint32", "bias": "uint32", "slope": "uint32"},
            outputs=_OUT,
            strings={"func": _FUNCTIONS},
            defaults={
                "scale": 0x3F800000,
                "bias": 0,
                "slope": {"prelu": 0x3E800000, "leaky_relu": 0x3C23D70A},
            },
            before=_table,
        ),
        Unit(
            name="reduce",
            top="partial_sums",
            doc="sum, or largest or smallest number, of each row",
            inputs={"x": "uint32"},
            outputs=_OUT,
            strings={"op": {op.name.lower(): int(op) for op in REDUCTIONS}},
            rows=True,
        ),
        Unit(
            name="convert",
            top="convert",
            doc="number format conversion, nearest even",
            inputs={"x": "bits:src", "saturate": "uint8"},
            outputs={"out": "bits:dst"},
            strings={"src": _CODES, "dst": _CODES},
            defaults={"saturate": 0},
            limits={"saturate": 1},
        ),
        Unit(
            name="mx_dot",
            top="mx_dot",
            doc="MX dot product of four into FP32",
            inputs={"a": "uint8", "b": "uint8", "sa": "uint8", "sb": "uint8", "acc": "uint32"},
            outputs=_OUT,
            shapes={"a": (4,), "b": (4,)},
            strings={"fmt_a": _ELEMENTS, "fmt_b": _ELEMENTS, "scale_fmt": {"e8m0": 0, "e4m3fn": 1}},
            defaults={"scale_fmt": "e8m0"},
            refusal=_mixed,
        ),
        Unit(
            name="quantize_mx",
            top="quantize",
            doc="blocks of 32 numbers to MX elements and an E8M0 scale",
            inputs={"x": "uint16"},
            outputs={"elements": "uint8", "scale": "uint8"},
            shapes={"x": (MX_BLOCK,), "elements": (MX_BLOCK,)},
            strings={
                "fmt": {name: _CODES[name] for name in MX_EMAX},
                "rule": {"ocp": ScaleRule.OCP, "emax-1": ScaleRule.EMAX_1},
                "src": {name: _CODES[name] for name in ("bf16", "fp16")},
            },
            defaults={"rule": "ocp", "src": "bf16"},
        ),
        Unit(
            name="flit_encode",
            top="flit_encoder",
            doc="CRC and FEC of flits",
            inputs={"info": "uint8"},
            outputs={"flit": "uint8"},
            shapes={"info": (FLIT_INFO_BYTES,), "flit": (FLIT_BYTES,)},
            flits=True,
        ),
        Unit(
            name="flit_decode",
            top="flit_decoder",
            doc="repair and verdict of flits",
            inputs={"flit": "uint8"},
            outputs={"flit": "uint8", "valid": "uint8", "corrected": "uint8"},
            shapes={"flit": (FLIT_BYTES,)},
            flits=True,
        ),
    )
}


def find_unit(name: str) -> Unit:
    """The unit of that name. PlexusError lists the names."""
    if name not in UNITS:
        raise PlexusError(f"there is no unit {name!r}; there are {', '.join(UNITS)}")
    return UNITS[name]
