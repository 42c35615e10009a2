"""The linker script of an image: one region, local memory, with the stack at its bottom."""

from firmware.gpsimd.errors import FirmwareError
from rtl.contract.gpsimd import LOCAL_BYTES, LOCAL_BYTES_MAX, LOCAL_BYTES_MIN, STACK_BYTES, Region

__all__ = ["STACK_ALIGNMENT", "link_script"]

STACK_ALIGNMENT = 16
"""Bytes; the calling convention wants it."""

_SCRIPT = """\
/* Written by `python -m firmware.gpsimd.generated --write`. */
OUTPUT_ARCH(riscv)
ENTRY(_start)

MEMORY
{{
    LOCAL (rwx) : ORIGIN = {origin:#x}, LENGTH = {local_bytes}
}}

SECTIONS
{{
    /* At the bottom: below it there is no memory, so an overflow traps and harms nothing. */
    .stack (NOLOAD) : {{
        __stack_bottom = .;
        . += {stack_bytes};
        __stack_top = .;
    }} > LOCAL

    .text : ALIGN(16) {{
        __image_start = .;
        KEEP(*(.text.gp_start))
        KEEP(*(.text.gp_entry.*))
        *(.text .text.*)
    }} > LOCAL

    .rodata : ALIGN(16) {{
        *(.rodata .rodata.* .srodata .srodata.*)
    }} > LOCAL

    .init_array : ALIGN(4) {{
        __init_array_start = .;
        KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*)))
        KEEP(*(.init_array))
        __init_array_end = .;
    }} > LOCAL

    .data : ALIGN(16) {{
        *(.data .data.* .sdata .sdata.*)
        . = ALIGN(4);
        __image_end = .;
    }} > LOCAL

    .bss (NOLOAD) : ALIGN(16) {{
        __bss_start = .;
        *(.bss .bss.* .sbss .sbss.* COMMON)
        . = ALIGN(4);
        __bss_end = .;
    }} > LOCAL

    /* Neither loaded nor cleared: it keeps what a run left for the next. */
    .noinit (NOLOAD) : ALIGN(16) {{
        *(.noinit .noinit.*)
        . = ALIGN(64);
        __free_start = .;
    }} > LOCAL

    __local_end = ORIGIN(LOCAL) + LENGTH(LOCAL);

    /DISCARD/ : {{
        *(.eh_frame .eh_frame_hdr .note.* .comment)
    }}
}}
"""


def link_script(local_bytes: int = LOCAL_BYTES, stack_bytes: int = STACK_BYTES) -> str:
    """The script for a local memory and a stack of so many bytes. FirmwareError if a core cannot have them."""
    if not LOCAL_BYTES_MIN <= local_bytes <= LOCAL_BYTES_MAX or local_bytes & (local_bytes - 1):
        raise FirmwareError(
            f"local memory has a power of two from {LOCAL_BYTES_MIN:,} to {LOCAL_BYTES_MAX:,} bytes, "
            f"not {local_bytes:,}"
        )
    if not 0 < stack_bytes < local_bytes or stack_bytes % STACK_ALIGNMENT:
        raise FirmwareError(
            f"a stack has a multiple of {STACK_ALIGNMENT} bytes below those of local memory ({local_bytes:,}), "
            f"not {stack_bytes:,}"
        )
    return _SCRIPT.format(origin=int(Region.LOCAL), local_bytes=local_bytes, stack_bytes=stack_bytes)
