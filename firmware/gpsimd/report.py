"""An image in words: sizes, sections, entries, functions, and what a core says to it."""

from collections.abc import Iterator

from firmware.gpsimd.core import Core, need_fit
from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Image
from firmware.gpsimd.where import where

__all__ = ["describe", "long_functions", "sizes", "verdict"]

LONG = 256
"""Vector instructions of a function that are worth a warning: plain loops need tens. Sums of 64-bit integers, which the
vector unit does not have, become hundreds."""


def sizes(image: Image) -> str:
    """What the image takes of local memory, on one line."""
    loaded, stack = sum(section.size_bytes for section in image.loaded), image.stack_bytes
    other = sum(section.size_bytes for section in image.sections) - loaded - stack
    return f"{loaded:,} bytes loaded, {other:,} cleared or kept, {stack:,} of stack"


def long_functions(image: Image) -> Iterator[str]:
    """A sentence for each function with so many vector instructions that nobody can have meant it."""
    for name, function in image.functions.items():
        if function.vector_instructions > LONG:
            at = where(image.path, function.address)
            yield (
                f"{name}{f' ({at})' if at else ''} has {function.vector_instructions:,} vector instructions, more than "
                f"{LONG}: a loop over 64-bit integers is quicker without, after "
                "#pragma clang loop vectorize(disable)"
            )


def describe(image: Image) -> list[str]:
    """Everything worth knowing, line by line."""
    lines = [f"{image.path}: {sizes(image)}", f"entry {image.entry:#010x}"]
    lines += [f"entry {image.symbols[name]:#010x} {name}" for name in image.entries]
    if image.arch is None:
        lines.append("no Tag_RISCV_arch: what it needs is not known")
    else:
        lines.append(
            f"needs rv{image.arch.xlen}: {', '.join(sorted(image.arch.extensions))}; "
            f"VLEN at least {image.arch.vlen_bits}"
        )
    lines.append("sections")
    for section in image.sections:
        kind = "code" if section.executable else "data" if section.data else "not loaded"
        lines.append(f"  {section.address:#010x}  {section.size_bytes:>7,}  {kind:10}  {section.name}")
    lines.append("functions: address, bytes, vector instructions")
    for name, function in sorted(image.functions.items(), key=lambda one: one[1].address):
        lines.append(
            f"  {function.address:#010x}  {function.size_bytes:>7,}  {function.vector_instructions:>5,}  {name}"
        )
    return lines


def verdict(image: Image, core: Core) -> str:
    """Whether a core runs the image, or the sentence in which it refuses."""
    vectors = f"VLEN {core.vlen_bits}" if core.vlen_bits else "no vectors"
    what = f"{vectors}, local memory {core.local_bytes:,} bytes"
    try:
        need_fit(image, core)
    except FirmwareError as error:
        return f"refuses it ({what}): {error}"
    return f"runs it ({what})"
