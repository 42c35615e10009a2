"""Instructions of GPSIMD cores out of a VCD made by hand, and as lines: what is read, what is refused, what is told."""

import dataclasses
from pathlib import Path

import pytest

from firmware.gpsimd.elf import read_image
from firmware.gpsimd.mnemonic import mnemonic
from sim.cli import main
from sim.errors import PlexusError
from sim.report.instructions import instruction_lines
from sim.run.retired import RetiredInstruction, retired_in
from verif.checks.made_elf import LOCAL, code, elf, stack
from verif.golden.riscv.decode import decode
from verif.golden.riscv.expand import expand

FIELDS = [field.name for field in dataclasses.fields(RetiredInstruction)][2:]
SCOPES = ("top", "top", "gpsimd", "pipeline", "tile_{}", "instance", "core")
NONE = dict.fromkeys(FIELDS, 0)
ADD = NONE | {"insn": 0x00C58533, "pc_rdata": LOCAL + 4096, "pc_wdata": LOCAL + 4100, "rd_addr": 10, "rd_wdata": 7,
              "rs1_addr": 11, "rs1_rdata": 3, "rs2_addr": 12, "rs2_rdata": 4}  # fmt: skip
LOAD = NONE | {"order": 1, "insn": 0x4298, "pc_rdata": LOCAL + 4100, "rd_addr": 14, "rd_wdata": 0xFFFFFF80,
               "mem_addr": 0x2000_0004, "mem_rmask": 4, "mem_rdata": 0x0080_0000, "rs1_addr": 13,
               "rs1_rdata": 0x2000_0006}  # fmt: skip
STORE = NONE | {"order": 2, "insn": 0xC118, "pc_rdata": LOCAL + 4102, "mem_addr": 0x5000_0000, "mem_wmask": 15,
                "mem_wdata": 0xABC}  # fmt: skip


def waves(path: Path, moments: list[tuple[int, int, dict[str, int] | None]], cores: int = 2) -> Path:
    """A VCD of `cores`: (half cycle, core, record at its port or None) in the order of time."""
    text = ["$timescale 1ps $end"]
    text += [f"$scope module {name} $end" for name in SCOPES[:4]]
    for core in range(cores):
        text += [f"$scope module {name.format(core)} $end" for name in SCOPES[4:]]
        text.append(f"$var wire 1 v{core} retired_valid $end")
        text += [f"$var wire 64 {core}{n} retired.{field} [63:0] $end" for n, field in enumerate(FIELDS)]
        text += ["$upscope $end"] * 3
    text += ["$upscope $end"] * 4 + ["$enddefinitions $end"]
    for half, core, record in moments:
        text += [f"#{half}", f"{int(record is not None)}v{core}"]
        text += [f"b{record[field]:b} {core}{n}" for n, field in enumerate(FIELDS)] if record else []
    path.write_text("\n".join(text) + "\n")
    return path


def test_a_record_is_told_once_in_the_cycle_in_which_it_comes(tmp_path: Path) -> None:
    """A port stands still with its core's clock; a program may begin with the record that the last one ended with."""
    trap = NONE | {"order": 1, "trap": 1, "cause": 5}
    moments = [
        (0, 0, None), (7, 0, ADD), (11, 1, ADD), (11, 0, trap), (15, 0, LOAD), (19, 0, LOAD), (23, 0, None),
        (27, 0, LOAD),
    ]  # fmt: skip
    path = waves(tmp_path / "a.vcd", moments)
    found = [(one.cycle, one.core, one.order, one.trap) for one in retired_in(path)]
    assert found == [(4, 0, 0, 0), (6, 1, 0, 0), (6, 0, 1, 1), (8, 0, 1, 0), (14, 0, 1, 0)]
    assert [one.cycle for one in retired_in(path, 1)] == [6]
    assert next(retired_in(path)) == RetiredInstruction(4, 0, **ADD)


def test_values_that_nobody_knows_are_zeros(tmp_path: Path) -> None:
    path = waves(tmp_path / "a.vcd", [(1, 0, ADD)])
    path.write_text(path.read_text().replace("b111 0", "bx1xz 0"))
    assert next(retired_in(path)).rd_wdata == 4


@pytest.mark.parametrize(
    ("name", "text", "core", "says"),
    [
        ("a.fst", "", None, "instructions are read from waves in a file that ends in .vcd, not from "),
        ("none.vcd", None, None, "none.vcd cannot be read: No such file or directory"),
        ("a.vcd", "$scope module top $end\n$enddefinitions $end\n", None, "GPSIMD core: of programs that run on some"),
        ("a.vcd", "", None, "has no GPSIMD core"),
        ("a.vcd", "#3\n1v0\nb12 00\n", None, "a.vcd is torn: "),
        ("a.vcd", "", 2, "a.vcd has no core 2: those in it are 0, 1"),
    ],
)
def test_what_is_no_such_file_is_a_sentence(
    tmp_path: Path, name: str, text: str | None, core: int | None, says: str
) -> None:
    path = tmp_path / name
    if core is not None or (text or "").startswith("#"):
        waves(path, [])
        path.write_text(path.read_text() + (text or ""))
    elif text is not None:
        path.write_text(text)
    with pytest.raises(PlexusError) as told:
        list(retired_in(path, core))
    assert says in str(told.value) and "\n" not in str(told.value)


def test_lines_have_what_each_instruction_did_and_where_it_is_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "sift.elf"
    image.write_bytes(elf([stack(), code()], symbols=[("gp_body_sift", LOCAL + 4096, 4)]))
    trap = NONE | {"order": 2, "insn": 0x9002, "trap": 1, "cause": 3}
    handler = NONE | {"order": 3, "insn": 0x30200073, "intr": 1, "cause": 11}
    moments = [(1, 0, ADD), (3, 0, LOAD), (5, 0, STORE), (7, 0, trap), (9, 0, handler)]
    path = waves(tmp_path / "a.vcd", moments)
    head, *lines = (line.split() for line in instruction_lines(retired_in(path), read_image(image)))
    assert head == ["cycle", "core", "pc", "insn", "mnemonic", "writes", "memory", "reads", "where"]
    assert lines == [
        ["1", "gp0", "10001000", "00c58533", "add", "x10", "=", "00000007", "x11=00000003", "x12=00000004", "sift"],
        ["2", "gp0", "10001004", "4298", "c.lw", "x14", "=", "ffffff80", "[20000006]", "->", "80", "x13=20000006"],
        ["3", "gp0", "10001006", "c118", "c.sw", "[50000000]", "<-", "00000abc"],
        ["4", "gp0", "00000000", "9002", "trap", "3"],
        ["5", "gp0", "00000000", "30200073", "mret", "(interrupt", "11)"],
    ]
    asked = ["firmware", "instructions", str(path), "--elf", str(image)]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert main([*asked, "-o", str(tmp_path / "a.txt")]) == 0 and (tmp_path / "a.txt").read_text() == told
    assert main([*asked, "--core", "1"]) == 0 and capsys.readouterr().out == ""
    assert main([*asked, "--core", "7"]) == 2 and "has no core 7" in capsys.readouterr().err
    assert main([*asked, "-o", str(tmp_path / "nowhere" / "a.txt")]) == 2


COMPRESSED = {
    "addi4spn": "addi", "addi16sp": "addi", "li": "addi", "mv": "add", "lwsp": "lw", "swsp": "sw", "j": "jal",
    "jr": "jalr", "beqz": "beq", "bnez": "bne",
}  # fmt: skip


def test_each_compressed_instruction_is_called_what_it_is() -> None:
    """All 49,152 of them, beside the golden hart."""
    for half in range(1 << 16):
        if half & 3 != 3 and (word := expand(half)) is not None:
            instruction = decode(word)
            assert instruction is not None
            name = mnemonic(half)
            assert name.startswith("c.") and COMPRESSED.get(name[2:], name[2:]) == instruction.name, hex(half)


def test_instructions_of_32_bits_are_called_what_they_are() -> None:
    """Each opcode with each funct3, funct7 and what else chooses one, beside the golden hart."""
    seen = set()
    for opcode in range(3, 128, 4):
        for funct3 in range(8):
            for high in range(1 << 12):
                word = high << 20 | 5 << 15 | funct3 << 12 | 6 << 7 | opcode
                if (instruction := decode(word)) is not None:
                    assert mnemonic(word) == instruction.name, hex(word)
                    seen.add(instruction.name)
    for word, name in ((0x73, "ecall"), (0x100073, "ebreak"), (0x30200073, "mret"), (0x10500073, "wfi")):
        assert mnemonic(word) == name
    assert len(seen) == 53
    assert [mnemonic(word) for word in (0x02058007, 0x02058027, 0x02C58557, 0)] == [
        "vector load", "vector store", "vector", "",
    ]  # fmt: skip
