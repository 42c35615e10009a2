"""The reader of GPSIMD images, on ELF files made byte by byte: each refusal once, and no damage ends in a traceback."""

import random
from pathlib import Path

import pytest

from firmware.gpsimd.arch import parse_arch
from firmware.gpsimd.core import Core, core_of, need_fit
from firmware.gpsimd.elf import read_image
from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Image
from firmware.gpsimd.report import describe, verdict
from rtl.contract.config import NAMED, load
from sim.cli import main
from verif.checks.made_elf import (
    ARCH,
    LOCAL,
    LW_FLOAT_WIDTH,
    NOBITS,
    PROGBITS,
    RET,
    VADD,
    attributes,
    code,
    elf,
    stack,
)


def read(tmp_path: Path, data: bytes) -> Image:
    path = tmp_path / "a.elf"
    path.write_bytes(data)
    return read_image(path)


def test_what_is_in_an_image(tmp_path: Path) -> None:
    text = VADD + LW_FLOAT_WIDTH + b"\x01\x00" + RET
    data = (".data", PROGBITS, 3, LOCAL + 4096 + 32, b"\x07\x08", 2)
    bss = (".bss", NOBITS, 3, LOCAL + 4096 + 64, b"", 100)
    image = read(
        tmp_path,
        elf(
            [stack(), code(data=text), data, bss, attributes(ARCH)],
            symbols=[("add", LOCAL + 4096, 4), ("gp_body_add", LOCAL + 4100, len(text) - 4)],
        ),
    )
    assert image.entry == image.start == LOCAL + 4096 and image.end == LOCAL + 4096 + 164
    assert image.bytes() == text.ljust(32, b"\0") + b"\x07\x08"
    assert image.stack_bytes == 4096
    assert image.entries == ("add",) and image.entry_of("add") == LOCAL + 4096
    assert [f.vector_instructions for f in image.functions.values()] == [1, 0]
    assert image.arch is not None and image.arch.vlen_bits == 128 and "zve32x" in image.arch.extensions
    assert any("48 bytes" in line or "loaded" in line for line in describe(image))
    with pytest.raises(FirmwareError, match="there is no entry 'sub'; GP_ENTRY has made add"):
        image.entry_of("sub")


def test_an_image_that_does_not_say_what_it_needs_is_taken(tmp_path: Path) -> None:
    image = read(tmp_path, elf([stack(), code()]))
    assert image.arch is None
    need_fit(image, Core(name="bare", vlen_bits=0))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is no ELF file: it begins with nothing, not 7f 45 4c 46"),
        (b"#!/bin/sh", "is no ELF file: it begins with 23 21 2f 62, not 7f 45 4c 46"),
        (elf(ident=b"\x7fELF\x02\x01\x01"), "is of class ELF64, and GPSIMD cores have 32-bit registers: ELF32"),
        (elf(ident=b"\x7fELF\x01\x02\x01"), "is big endian, and GPSIMD cores are little endian"),
        (elf(machine=40), "is for machine EM_ARM, and GPSIMD cores are EM_RISCV"),
        (elf(kind=1), "is of type ET_REL, and a program is ET_EXEC: link it with plexus firmware build"),
        (elf(flags=3), "passes floating point in registers (single float ABI), and GPSIMD cores have none"),
        (elf(flags=5), "passes floating point in registers (double float ABI), and GPSIMD cores have none"),
        (elf(flags=9), "uses the ABI of rv32e, and GPSIMD cores have 32 registers"),
        (elf(flags=0x11), "relies on total store order (Ztso), which GPSIMD cores do not have"),
        (
            elf([code(0x7000_0000)]),
            "section .text lies at 0x70000000, outside local memory, which begins at 0x10000000 and, the same bytes",
        ),
        (
            elf([code(), (".data", PROGBITS, 3, 0x8000_0000, b"\x07", 1)]),
            "section .data lies at 0x80000000 and others near 0x10000000; all sections lie in one of the two places",
        ),
        (elf([code(0x1000)]), "section .text lies at 0x00001000, outside local memory"),
        (elf(entry=0), "has no entry (e_entry is 0): the start code defines _start"),
        (elf(entry=LOCAL + 8), "its entry 0x10000008 is no instruction of a section with code"),
        (elf(entry=LOCAL + 4097), "its entry 0x10001001 is no instruction of a section with code"),
        (elf([stack()]), "has no section to load"),
        (elf([code(), attributes("rv32i2p1_?")]), "its Tag_RISCV_arch cannot be read, for '?' in 'rv32i2p1_?' is no"),
        (elf()[:200], "is no whole ELF file: "),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_no_core_takes(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(FirmwareError) as error:
        read(tmp_path, data)
    assert str(error.value).startswith(f"{tmp_path / 'a.elf'}") and says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FirmwareError, match="cannot be read: No such file"):
        read_image(tmp_path / "a.elf")
    with pytest.raises(FirmwareError, match="cannot be read: Is a directory"):
        read_image(tmp_path)


VECTORS = {name: load(name, ["gpsimd.vectors=true"]) for name in NAMED}
SMALL = core_of(VECTORS["small"])


@pytest.mark.parametrize(
    ("arch", "core", "says"),
    [
        ("rv32i2p1_f2p2_zicsr2p0", SMALL, "needs extension f, and a core of small has c, i, m, zca, zicsr, zifencei"),
        ("rv32imac", SMALL, "needs extension a, and"),
        ("rv32i2p1_zba1p0", SMALL, "needs extension zba, and"),
        ("rv32e2p0_m2p0", SMALL, "needs extension e, and"),
        ("rv32i2p1_zve32f1p0_zve32x1p0_zvl32b1p0", SMALL, "needs extension zve32f, and"),
        (
            "rv32i2p1_zve32x1p0_zvl512b1p0",
            SMALL,
            "vectors of at least 512 bits (zvl512b), and a core of small has VLEN 256",
        ),
        (ARCH, Core(name="bare", vlen_bits=0), "needs extension zve32x, and a core of bare has c, i, m, zca"),
    ],
)
def test_what_this_core_does_not_take(tmp_path: Path, arch: str, core: Core, says: str) -> None:
    image = read(tmp_path, elf([stack(), code(), attributes(arch)]))
    with pytest.raises(FirmwareError) as error:
        need_fit(image, core)
    assert says in str(error.value)
    assert verdict(image, core).startswith("refuses it (VLEN " if core.vlen_bits else "refuses it (no vectors")


def test_an_image_and_its_stack_are_within_local_memory(tmp_path: Path) -> None:
    bss = (".bss", NOBITS, 3, LOCAL + 4100, b"", 65536 - 4100)
    need_fit(read(tmp_path, elf([stack(), code(), bss])), SMALL)
    larger = (*bss[:5], bss[5] + 1)
    with pytest.raises(
        FirmwareError, match="takes 65,537 bytes, 4,096 of them stack, and local memory of a core of small"
    ):
        need_fit(read(tmp_path, elf([stack(), code(), larger])), SMALL)


def test_local_memory_is_that_of_the_configuration(tmp_path: Path) -> None:
    bss = (".bss", NOBITS, 3, LOCAL + 4100, b"", 65536)
    image = read(tmp_path, elf([stack(), code(), bss]))
    assert verdict(image, SMALL).startswith("refuses it")
    need_fit(image, core_of(load("small", ["gpsimd.local_bytes=131072"])))
    with pytest.raises(FirmwareError, match="configuration small has no GPSIMD cores: gpsimd.enabled is false"):
        core_of(load("small", ["gpsimd.enabled=false"]))


def test_info_takes_changes_of_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.elf"
    path.write_bytes(elf([stack(), code(), (".bss", NOBITS, 3, LOCAL + 8192, b"", 65536)]))
    asked = ["firmware", "info", str(path), "--config", "small"]
    assert main(asked) == 2 and "has 65,536" in capsys.readouterr().err
    assert main([*asked, "--set", "gpsimd.local_bytes=131072"]) == 0
    assert "runs it (VLEN 256, local memory 131,072 bytes)" in capsys.readouterr().out
    assert main([*asked, "--set", "gpsimd.local_bytes=131072", "--set", "gpsimd.vectors=false"]) == 0
    assert "runs it (no vectors, local memory 131,072 bytes)" in capsys.readouterr().out
    assert main(["firmware", "info", str(path), "--set", "gpsimd.local_bytes=131072"]) == 2
    assert "--set gpsimd.local_bytes=131072 changes a configuration: name one" in capsys.readouterr().err


def test_an_image_linked_for_2_gib(tmp_path: Path) -> None:
    """As public test suites are: code at 0x80000000, bss that nobody clears, no stack."""
    bss = (".bss", NOBITS, 3, 0x8000_1000, b"", 40)
    image = read(tmp_path, elf([code(0x8000_0000), bss], entry=0x8000_0000, symbols=[("_start", 0x8000_0000, 4)]))
    assert (image.base, image.start, image.entry) == (0x8000_0000,) * 3 and image.bytes() == RET
    assert image.load_bytes() == RET + bytes(0x1000 + 40 - 4)
    assert image.code_at("_start") == 0x8000_0000 and image.code_at("main") is None
    assert image.function_at(0x8000_0002) == "_start" and image.function_at(0x8000_0004) == ""
    need_fit(image, SMALL)
    with pytest.raises(FirmwareError, match="takes 4,136 bytes"):
        need_fit(image, Core(name="mini", vlen_bits=0, local_bytes=4096))


@pytest.mark.parametrize("length", [128, 256, 512])
def test_a_core_takes_vectors_up_to_its_own(tmp_path: Path, length: int) -> None:
    image = read(tmp_path, elf([stack(), code(), attributes(f"rv32i2p1_zve32x1p0_zvl{length}b1p0")]))
    taken = {name for name, cfg in VECTORS.items() if verdict(image, core_of(cfg)).startswith("runs")}
    lengths = {"tiny": 128, "small": 256, "full": 512}
    assert {name for name in taken if name in lengths} == {name for name, most in lengths.items() if length <= most}


@pytest.mark.parametrize(
    ("text", "extensions"),
    [
        ("rv32imc", "i m c"),
        ("rv32i2p1_m2p0_zicsr2p0", "i m zicsr"),
        ("rv32i2p1m2p0c2p0_zvl256b1p0", "i m c zvl256b"),
        ("rv32imc_zicsr_zvl128b", "i m c zicsr zvl128b"),
        ("rv32i2p1_xmine1p0", "i xmine"),
    ],
)
def test_names_of_instruction_sets(text: str, extensions: str) -> None:
    assert parse_arch(text).extensions == set(extensions.split())


@pytest.mark.parametrize("text", ["", "x86", "rv32i_2", "rv16i", "rv32i_é"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="no extension|does not begin"):
        parse_arch(text)


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    """A file cut short, and 500 with bytes changed: an image, or one sentence."""
    whole = elf(symbols=[("main", LOCAL + 4096, 4)])
    rng = random.Random(1)
    damaged = [whole[:length] for length in range(0, len(whole), 3)]
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        damaged.append(bytes(data))
    sentences = []
    for data in damaged:
        try:
            need_fit(read(tmp_path, data), SMALL)
        except FirmwareError as error:
            sentences.append(str(error))
    assert len(sentences) > len(whole) // 3
    assert not [sentence for sentence in sentences if "\n" in sentence]
