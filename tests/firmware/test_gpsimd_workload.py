"""The workload gpsimd: its parameters and arrays, what a run of it leaves, what is refused; programs made by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import KernelError
from firmware.program import Program
from firmware.workloads import WORKLOADS, find_workload
from rtl.contract.config import named
from rtl.contract.gpsimd import RUN, Mailbox, Region
from rtl.contract.isa import Opcode, Queue
from rtl.contract.roles import Uses
from sim.report.programs import ended
from sim.run.result import Fault
from verif.checks.cycles import Entry, entries
from verif.checks.made_elf import CODE, LOCAL, PROGBITS, RET, code, elf, stack
from verif.checks.riscv_words import jump, load_constant, store
from verif.golden.machine import GoldenMachine, RunResult

SMALL = named("small")
TOO = int(Region.LOCAL_TOO)
TOHOST = TOO + 0x800


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return f"elf={path}"


def words_at(address: int, *values: int) -> bytes:
    """Store these words, one behind the other."""
    text = load_constant(10, address)
    for n, value in enumerate(values):
        text += load_constant(11, value) + store(2, 11, 10, 4 * n)
    return text


def public(exit_value: int, begin: int, *values: int) -> bytes:
    """As a public test suite makes it: code at 2 GiB, words between begin_signature and end_signature, a word to
    tohost."""
    text = words_at(begin, *values) + words_at(TOHOST, exit_value << 1 | 1) + jump(0, 0)
    symbols = [("tohost", TOHOST, 4), ("begin_signature", begin, 4), ("end_signature", begin + 4 * len(values), 4)]
    data = (".data", PROGBITS, 3, TOO + 0x1000, bytes(256), 256)
    return elf([(".text", PROGBITS, CODE, TOO, text, len(text)), data], entry=TOO, symbols=symbols)


def program(*settings: str, cfg: str = "small") -> Program:
    workload = find_workload("gpsimd")
    return workload.build(named(cfg), workload.parse(settings))


def golden(made: Program) -> RunResult:
    machine = GoldenMachine(made.config)
    machine.load(build_image(made))
    return machine.run()


def arrays(path: Path, **given: Any) -> str:
    np.savez(path, **given)
    return f"in={path}"


def run_word(made: Program) -> dict[str, int]:
    (run,) = (i for i in made.queues[Queue.GPSIMD] if i.opcode == Opcode.GP_RUN)
    return RUN.unpack(run.imm0)


def test_operands_and_the_result_have_their_dtypes(tmp_path: Path) -> None:
    image = write(tmp_path / "a.elf", elf([stack(), code()]))
    rng = np.random.default_rng(0)
    given = {"src0": rng.standard_normal((32, 3), np.float32), "src1": rng.integers(0, 9, (4, 7), np.uint8)}
    given |= {"dst": rng.standard_normal((5, 2)).astype(np.float16), "imm2": np.uint64(1 << 63)}
    made = program(image, arrays(tmp_path / "in.npz", **given), f"out={tmp_path / 'out.npz'}", "watchdog=77")
    tensors = made.tensors
    assert [tensors[f"{name} given"].dtype for name in ("src0", "src1", "dst")] == ["fp32", "uint8", "fp16"]
    for name in ("src0", "src1", "dst"):
        bits = tensors[f"{name} given"].data
        assert bits is not None and bits.tobytes() == given[name].tobytes()
    assert [t.name for t in tensors.values() if t.output] == ["dst"]
    assert run_word(made) == {"entry": LOCAL + 4096, "cores": 15, "watchdog": 77}
    bits = given["dst"].view(np.uint16)
    assert np.array_equal(made.arrays({"dst": bits})["dst"], given["dst"]) and made.out == tmp_path / "out.npz"


def test_which_cores_run(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.elf", elf([stack(), code()]))
    suite = write(tmp_path / "b.elf", public(0, TOO + 0x1000, 1))
    assert [run_word(program(plain, *more))["cores"] for more in ((), ("cores=3",))] == [15, 7]
    assert [run_word(program(suite, *more))["cores"] for more in ((), ("cores=3",))] == [1, 7]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"x": np.zeros((1, 1), np.int32)}, "a program takes src0, src1, dst, imm1, imm2, and no 'x'"),
        ({"src0": np.zeros((1, 1), np.int64)}, "src0 is of int64; SBUF takes float32, float16, int8"),
        ({"src0": np.zeros(4, np.int32)}, "src0 must be [partitions, columns] with at most 32 partitions"),
        ({"dst": np.zeros((33, 1), np.int32)}, "dst must be [partitions, columns] with at most 32 partitions"),
        ({"src1": np.zeros((1, 0), np.int32)}, "src1 must be [partitions, columns] with at most 32 partitions"),
        ({"imm1": np.int64(-1)}, "imm1 must be one whole number of 64 bits without sign, not int64 -1"),
        ({"imm2": np.zeros(2, np.int64)}, "imm2 must be one whole number of 64 bits without sign, not int64 [0 0]"),
        ({"imm2": np.float32(1)}, "imm2 must be one whole number"),
        (
            {"src0": np.zeros((32, 20000), np.float32)},
            "gpsimd does not fit the memories of small: tile src0 tile needs",
        ),
    ],
)
def test_arrays_that_are_refused(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(KernelError) as error:
        program(write(tmp_path / "a.elf", elf([stack(), code()])), arrays(tmp_path / "in.npz", **given))
    assert says in str(error.value)


def test_settings_that_are_refused(tmp_path: Path) -> None:
    image = write(tmp_path / "a.elf", elf([stack(), code()]))
    (tmp_path / "text.npz").write_text("no archive")
    wrong = public(0, TOO + 0x1002, 1)
    for settings, says in (
        ((), "gpsimd runs a program of yours: elf=FILE, as plexus firmware build makes it"),
        (("file=a.elf",), "workload gpsimd has no parameter 'file'; it has elf, in, out, entry, cores, watchdog, "),
        (("cores=0",), "cores must be at least 1, not 0"),
        (("watchdog=16777216",), "watchdog must be at most 16777215, not 16777216"),
        ((image, "cores=5"), "there is no core 4 in the GPSIMD engine of small, which has 4, from 0"),
        ((image, "entry=half"), "there is no entry 'half'; GP_ENTRY has made none"),
        ((image, f"in={tmp_path / 'none.npz'}"), "there is no file"),
        ((image, f"in={tmp_path / 'text.npz'}"), "is not an .npz archive of plain arrays"),
        ((image, f"in={tmp_path}"), "cannot be read: Is a directory"),
        ((image, f"out={tmp_path}"), "must be a file in a folder that is there"),
        ((image, f"out={tmp_path / 'none' / 'a.npz'}"), "must be a file in a folder that is there"),
        ((image, f"out={tmp_path / 'a.npz'}"), "neither dst in the arrays given with in=, nor begin_signature"),
        ((f"elf={tmp_path / 'in.npz'}",), "cannot be read: No such file"),
        ((write(tmp_path / "c.elf", wrong),), "signature is bytes 4098 to 4102 of local memory; that must be whole"),
    ):
        with pytest.raises(KernelError) as error:
            program(*settings)
        assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("cfg", ["tiny", "small"])
@pytest.mark.parametrize(("first", "count"), [(0, 8), (0, 1), (4, 3), (12, 19), (20, 1), (0, 33), (28, 2)])
def test_a_signature_is_read_wherever_it_lies(tmp_path: Path, cfg: str, first: int, count: int) -> None:
    values = [0x1000_0000 + n for n in range(count)]
    made = program(write(tmp_path / "a.elf", public(0, TOO + 0x1000 + first, *values)), cfg=cfg)
    result = golden(made)
    assert not result.faults
    assert made.arrays(result.outputs)["signature"].tolist() == values


def test_a_long_signature_comes_in_pieces(tmp_path: Path) -> None:
    """More rows than the tile of tiny has columns."""
    length = 4 * 1100
    image = elf(
        [
            (".text", PROGBITS, CODE, TOO, words_at(TOHOST, 1) + jump(0, 0), 60),
            (".data", PROGBITS, 3, TOO + 0x1000, (b"").join(n.to_bytes(4, "little") for n in range(1200)), 4800),
        ],
        entry=TOO,
        symbols=[
            ("tohost", TOHOST, 4),
            ("begin_signature", TOO + 0x1008, 4),
            ("end_signature", TOO + 0x1008 + length, 4),
        ],
    )
    made = program(write(tmp_path / "a.elf", image), cfg="tiny")
    result = golden(made)
    assert not result.faults
    assert made.arrays(result.outputs)["signature"].tolist() == list(range(2, 1102))


def test_how_a_program_ended_is_a_sentence(tmp_path: Path) -> None:
    mailbox = int(Region.MAILBOX)
    printing = words_at(mailbox + Mailbox.PUT, ord("a")) + words_at(mailbox + Mailbox.DONE, 0) + RET
    for name, data, settings, says in (
        ("five.elf", public(5, TOO + 0x1000, 1), (), "core gp0 of five.elf ended with exit value 5, not 0"),
        (
            "wild.elf",
            elf([code(data=words_at(0x100, 1), address=LOCAL)], entry=LOCAL, symbols=[("main", LOCAL, 64)]),
            ("cores=1",),
            f"core gp0 of wild.elf trapped: store outside memory (mcause 7) at pc {LOCAL + 16:#010x} in main",
        ),
        (
            "loop.elf",
            elf([code(data=jump(0, 0), address=LOCAL)], entry=LOCAL),
            ("watchdog=500", "cores=1"),
            "core gp0 of loop.elf still ran after 500 GPSIMD cycles, the limit of its watchdog",
        ),
        ("fine.elf", elf([code(data=printing, address=LOCAL)], entry=LOCAL), (), ""),
    ):
        made = program(write(tmp_path / name, data), *settings)
        result = golden(made)
        told = [
            ended(Fault(queue=f.queue, sequence=f.sequence, cause=f.cause, address=f.address), made)
            for f in result.faults
        ]
        assert told == ([says] if says else [])
    assert getattr(result, "printed", {}) == dict.fromkeys(range(4), b"a")


def test_a_workload_of_sums_says_so() -> None:
    workload = find_workload("dma")
    for settings in (["add=fp32"], ["add=int32", "direction=inside"], ["direction=inside"]):
        params = workload.parse([*settings, "rows=64", "row_bytes=64"])
        uses = workload.build(named("tiny"), params).uses
        assert uses == workload.uses(params) == (Uses.SUMS if settings[0].startswith("add") else Uses(0))


@pytest.mark.parametrize(
    "entry", [one for one in entries() if one.section == "tiny" and one.workload in WORKLOADS], ids=str
)
def test_workloads_say_what_they_need(entry: Entry) -> None:
    """By that a run takes its model, before there is a program."""
    workload = find_workload(entry.workload)
    params = workload.parse(entry.params)
    assert workload.build(named("tiny"), params).uses == workload.uses(params)
    assert (Uses.CORES in workload.uses(params)) == (entry.workload == "gpsimd" or "router=gpsimd" in entry.params)
