"""Files that are written from the contract and committed. `python -m firmware.gpsimd.generated [--write]` compares.

`include/plexus/contract.h` holds addresses, mailbox registers, opcodes and every bit field of instructions and
descriptors; `include/plexus/operators.h` the arguments of the operators in `lib`; `link.ld` the memory of a core.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

from firmware.gpsimd.link_script import link_script
from rtl.contract import descriptor, gpsimd, gpsimd_operators, isa, memmap
from rtl.contract.formats import FORMATS
from rtl.contract.words import Word

__all__ = ["FOLDER", "contract_header", "generated_files", "main", "operators_header"]

FOLDER = Path(__file__).resolve().parent

_ENUMS: tuple[tuple[str, type[IntEnum]], ...] = (
    ("REGION", gpsimd.Region),
    ("MAILBOX", gpsimd.Mailbox),
    ("WAIT", gpsimd.WaitFor),
    ("COUNTER", gpsimd.Counter),
    ("SPACE", memmap.Space),
    ("UPDATE", isa.Update),
)
_OPERATOR_ENUMS: tuple[tuple[str, type[IntEnum]], ...] = (
    ("INTEGER", gpsimd_operators.Integer),
    ("RELATION", gpsimd_operators.Relation),
    ("REDUCTION", gpsimd_operators.Reduction),
    ("GATHER", gpsimd_operators.Gather),
)
_WORDS: tuple[Word, ...] = (isa.INSTRUCTION, descriptor.DESCRIPTOR, gpsimd.RUN)
_OPERATOR_NUMBERS = ("K_MAX", "BINS_MAX", "ROUTED_MAX")
_NUMBERS = ("CORES_MAX", "LANE_BITS", "LOCAL_BYTES", "SHARED_BYTES", "STACK_BYTES", "WATCHDOG_CYCLES")


def _comments(enum: type[IntEnum]) -> dict[str, str]:
    """What stands behind each member in the source."""
    return dict(re.findall(r"^    (\w+) = [^#\n]+?(?:#\s*(.*))?$", inspect.getsource(enum), re.MULTILINE))


def _define(name: str, value: str, comment: str = "") -> str:
    line = f"#define {name} {value}"
    return f"{line}  /* {comment} */" if comment else line


def _enum(prefix: str, enum: type[IntEnum]) -> Iterator[str]:
    comments = _comments(enum)
    yield f"/* {inspect.cleandoc(enum.__doc__ or '').splitlines()[0]} */"
    for member in enum:
        value = f"{member.value:#x}u" if enum in (gpsimd.Region, gpsimd.Mailbox) else str(member.value)
        yield _define(f"PLEXUS_{prefix}_{member.name}", value, comments.get(member.name, ""))
    yield ""


def _word(word: Word) -> Iterator[str]:
    yield f"/* Bit fields of {word.name}, {word.width} bits: position of the least significant bit, width. */"
    for field in word:
        name = f"PLEXUS_{word.name.upper()}_{field.name.rstrip('_').upper()}"
        yield _define(f"{name}_LSB", str(word.offset(field.name)))
        yield _define(f"{name}_BITS", str(field.width), field.doc)
    yield ""


def contract_header() -> str:
    """Text of include/plexus/contract.h. Only preprocessor definitions, so that assembly can include it."""
    lines = [
        "/* Numbers that firmware and hardware share, from rtl/contract.",
        " * Written by `python -m firmware.gpsimd.generated --write`.",
        " */",
        "#ifndef PLEXUS_CONTRACT_H",
        "#define PLEXUS_CONTRACT_H",
        "",
        *(_define(f"PLEXUS_{name}", f"{getattr(gpsimd, name)}u") for name in _NUMBERS),
        _define("PLEXUS_INSTRUCTION_BYTES", f"{isa.INSTRUCTION_BYTES}u"),
        _define("PLEXUS_PARTITION_STRIDE_BYTES", f"{memmap.PARTITION_STRIDE_BYTES}u"),
        _define("PLEXUS_CORE_ID_LSB", str(memmap.CoreId.LSB)),
        _define("PLEXUS_SPACE_LSB", str(memmap.ADDRESS.offset("space"))),
        "",
    ]
    for prefix, enum in _ENUMS:
        lines += _enum(prefix, enum)
    lines.append("/* Codes of an operand's dtype. */")
    lines += [_define(f"PLEXUS_DTYPE_{fmt.name.upper()}", str(fmt.code)) for fmt in FORMATS.values()]
    lines.append("")
    for word in _WORDS:
        lines += _word(word)
    return "\n".join([*lines, "#endif", ""])


def operators_header() -> str:
    """Text of include/plexus/operators.h."""
    lines = [
        "/* Arguments of operators, in imm1 and imm2 of their GP_RUN.",
        " * Written by `python -m firmware.gpsimd.generated --write`.",
        " */",
        "#ifndef PLEXUS_OPERATORS_H",
        "#define PLEXUS_OPERATORS_H",
        "",
        *(_define(f"PLEXUS_{name}", f"{getattr(gpsimd_operators, name)}u") for name in _OPERATOR_NUMBERS),
        "",
    ]
    for prefix, enum in _OPERATOR_ENUMS:
        lines += _enum(prefix, enum)
    for word in gpsimd_operators.ARGUMENTS.values():
        lines += _word(word)
    return "\n".join([*lines, "#endif", ""])


def generated_files() -> dict[Path, str]:
    """Path and text of every generated file."""
    headers = FOLDER / "include" / "plexus"
    return {
        headers / "contract.h": contract_header(),
        headers / "operators.h": operators_header(),
        FOLDER / "link.ld": link_script(),
    }


def main(arguments: list[str]) -> int:
    """Compare, or with --write renew; 1 if a file differs."""
    stale = [path for path, text in generated_files().items() if not path.is_file() or path.read_text() != text]
    for path in stale:
        if "--write" in arguments:
            path.write_text(generated_files()[path])
        print(f"{path.relative_to(FOLDER)} {'written' if '--write' in arguments else 'is not what the contract says'}")
    return int(bool(stale) and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
