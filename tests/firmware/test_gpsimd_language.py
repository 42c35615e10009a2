"""k.gpsimd: the words it emits, what it waits for, what it refuses. Images are made byte by byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.gpsimd.elf import read_image
from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.program import Instruction
from rtl.contract.config import load, named
from rtl.contract.formats import FORMATS
from rtl.contract.gpsimd import LOAD, RUN, Mailbox, Region
from rtl.contract.isa import INSTRUCTION, INSTRUCTION_BYTES, Opcode, Queue
from verif.checks.made_elf import LOCAL, NOBITS, PROGBITS, RET, VADD, attributes, code, elf, stack
from verif.checks.riscv_words import immediate, jump, load_constant
from verif.checks.riscv_words import store as storing
from verif.golden.machine import GoldenMachine

SMALL, TINY = named("small"), named("tiny")
SCALAR = load("small", ["gpsimd.vectors=false"])
LANES = 8  # of a core of small
SYMBOLS = [("_gp_start", LOCAL + 4096, 4), ("twice", LOCAL + 4096, 4), ("gp_body_twice", LOCAL + 4100, 4)]
ENTRIES = [*SYMBOLS, ("helper", LOCAL + 4098, 4)]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "twice.elf"
    path.write_bytes(elf([stack(), code(data=RET * 50)], symbols=ENTRIES))
    return path


def made(tmp_path: Path, name: str, *sections: Any, **more: Any) -> Path:
    path = tmp_path / name
    path.write_bytes(elf(sections, **more))
    return path


def queue(k: Kernel, *opcodes: Opcode) -> list[Instruction]:
    return [i for i in k.instructions(Queue.GPSIMD) if i.opcode in opcodes]


def test_words_of_a_load_and_a_run(image: Path) -> None:
    k = Kernel(SMALL, "one")
    x = k.sbuf("x", partitions=20, columns=6, dtype="int32", start=4)
    y = k.sbuf("y", partitions=32, columns=3, dtype="bf16")
    k.gpsimd.run(image, "twice", src=x[:, 1::2], src1=y[:, :], dst=x[3:5, :2], args=(7, 1 << 63), watchdog_cycles=99)
    built = build_image(k.program())
    base, count = built.queues[Queue.GPSIMD]
    words = built.memory()[base : base + count * INSTRUCTION_BYTES].reshape(count, INSTRUCTION_BYTES)
    loaded, run = (INSTRUCTION.unpack(int.from_bytes(word.tobytes(), "little")) for word in words)
    assert (loaded["opcode"], run["opcode"]) == (Opcode.GP_LOAD, Opcode.GP_RUN)
    assert LOAD.unpack(loaded["imm0"]) == {"offset": 4096, "cores": 15, "reserved": 0} and loaded["imm1"] == 0
    assert (loaded["src0_partition_start"], loaded["src0_partition_count"], loaded["src0_count0"]) == (0, LANES, 7)
    assert RUN.unpack(run["imm0"]) == {"entry": LOCAL + 4096, "cores": 15, "watchdog": 99}
    assert (run["imm1"], run["imm2"]) == (7, 1 << 63)
    assert (run["src0_partition_start"], run["src0_partition_count"], run["src0_step0"]) == (4, 20, 2)
    assert (run["src1_partition_count"], run["src1_dtype"]) == (32, FORMATS["bf16"].code)
    assert (run["dst_partition_start"], run["dst_partition_count"], run["dst_count0"]) == (7, 2, 2)


def test_the_image_in_hbm_is_word_c_lanes_plus_p(tmp_path: Path) -> None:
    """Element c of the p-th partition is word c * lanes + p; the image may begin within a row."""
    data = np.arange(1, 40, dtype="<u4")
    path = made(tmp_path, "a.elf", code(LOCAL + 4096 + 12, data.tobytes()), entry=LOCAL + 4096 + 12)
    k = Kernel(SMALL, "one")
    k.gpsimd.load(path)
    bits = k.program().tensors["gpsimd image 0"].data
    assert bits is not None and bits.shape == (LANES, 6)
    assert np.array_equal(bits.T.reshape(-1), np.concatenate([[0] * 3, data, [0] * 6]))


def test_a_long_image_comes_in_pieces(tmp_path: Path) -> None:
    """Through a tile of at most a sixteenth of SBUF; each piece waits for the copy, and the next copy for it."""
    bss = (".bss", NOBITS, 3, LOCAL + 8192, b"", 4000)
    path = made(tmp_path, "a.elf", code(data=RET * 1000), bss, symbols=[("tohost", LOCAL + 4096, 4)])
    k = Kernel(TINY, "one")
    k.gpsimd.load(path, [1])
    pieces = queue(k, Opcode.GP_LOAD)
    sizes = [i.src0.elements for i in pieces if i.src0]
    assert sizes == [128, 128, 128, 122] and TINY.sbuf.partition_bytes // 16 == 4 * 128
    assert [LOAD.unpack(i.imm0)["offset"] for i in pieces] == [4096 + 2048 * n for n in range(4)]
    assert {LOAD.unpack(i.imm0)["cores"] for i in pieces} == {2} and {i.imm1 for i in pieces} == {LOCAL + 4096}
    assert all(i.waits for i in pieces)


def test_what_is_loaded_is_not_loaded_again(image: Path, tmp_path: Path) -> None:
    other = made(tmp_path, "b.elf", stack(), code(data=RET * 9))
    k = Kernel(SMALL, "one")
    k.gpsimd.load(image)
    k.gpsimd.load(read_image(image), [2])
    k.gpsimd.run(image, cores=[0, 3])
    assert len(queue(k, Opcode.GP_LOAD)) == 1
    k.gpsimd.load(other, [2])
    k.gpsimd.run(image, cores=[0, 1, 3])
    assert len(queue(k, Opcode.GP_LOAD)) == 2
    k.gpsimd.run(image)  # core 2 has the other one
    masks = [LOAD.unpack(i.imm0)["cores"] for i in queue(k, Opcode.GP_LOAD)]
    assert masks == [15, 4, 15] and len(k.program().tensors) == 2
    assert [RUN.unpack(i.imm0)["cores"] for i in queue(k, Opcode.GP_RUN)] == [9, 11, 15]


def test_an_image_for_2_gib_is_moved_and_keeps_its_addresses(tmp_path: Path) -> None:
    symbols = [("tohost", 0x8000_0040, 4)]
    path = made(tmp_path, "rv32ui.elf", code(0x8000_0000, RET * 20), entry=0x8000_0000, symbols=symbols)
    k = Kernel(SMALL, "one")
    k.gpsimd.run(path, cores=[0])
    (loaded,), (run,) = queue(k, Opcode.GP_LOAD), queue(k, Opcode.GP_RUN)
    assert LOAD.unpack(loaded.imm0)["offset"] == 0 and loaded.imm1 == 0x8000_0040
    assert RUN.unpack(run.imm0)["entry"] == 0x8000_0000


def test_entries(image: Path) -> None:
    k = Kernel(SMALL, "one")
    for entry in (None, "twice", "helper"):
        k.gpsimd.run(image, entry)
    entries = [RUN.unpack(i.imm0)["entry"] for i in queue(k, Opcode.GP_RUN)]
    assert entries == [LOCAL + 4096, LOCAL + 4096, LOCAL + 4098]


def test_hazards_are_found(image: Path) -> None:
    """A run waits for who writes its operands; who reads its result, and who overwrites its source, wait for it."""
    k = Kernel(SMALL, "one")
    tiles = [k.sbuf(name, partitions=32, columns=4, dtype="int32") for name in ("a", "b", "c", "beside")]
    a, b, c, beside = (tile[:, :] for tile in tiles)
    k.gpsimd.load(image)
    for view in (a, beside):
        k.vector.memset(view, 0.0)
    k.gpsimd.run(image, src=a, dst=b)
    k.gpsimd.run(image, src=b, dst=c, touches=[beside])
    first, second = queue(k, Opcode.GP_RUN)
    vector, gpsimd = int(Queue.VECTOR), int(Queue.GPSIMD)
    assert [(w.semaphore, w.value) for w in first.waits] == [(vector, 1)]
    assert sorted((w.semaphore, w.value) for w in second.waits) == [(vector, 2), (gpsimd, 2)]
    k.vector.copy(a, beside)
    copies = k.instructions(Queue.VECTOR)
    assert [(w.semaphore, w.value) for w in copies[-1].waits] == [(gpsimd, 3)]


def test_local_memory_is_stored(image: Path) -> None:
    k = Kernel(SMALL, "one")
    tile = k.sbuf("words", partitions=LANES, columns=16, dtype="uint32", start=8)
    k.gpsimd.load(image)
    k.gpsimd.store(tile[:, 4:], 4096, core=3)
    (store,) = queue(k, Opcode.GP_STORE)
    assert LOAD.unpack(store.imm0) == {"offset": 4096, "cores": 8, "reserved": 0} and store.imm1 == 0
    assert store.dst is not None and (store.dst.partition_start, store.dst.elements) == (8, 12)


def sbuf(k: Kernel, **more: Any) -> Any:
    values = {"partitions": LANES, "columns": 4, "dtype": "uint32"} | more
    return k.sbuf("tile", **values)[:, :]


def test_refusals(image: Path, tmp_path: Path) -> None:
    float_ = made(tmp_path, "float.elf", stack(), code(), attributes("rv32i2p1_f2p2_zicsr2p0"))
    large = made(tmp_path, "large.elf", code(), (".bss", NOBITS, 3, LOCAL + 8192, b"", 65536))
    outside = made(tmp_path, "outside.elf", code(), (".data", PROGBITS, 3, 0x2000_0000, RET, 4))
    vectors = made(tmp_path, "vectors.elf", code(data=VADD + RET), symbols=[("add", LOCAL + 4096, 4)])
    cases: list[tuple[str, Callable[[Kernel], Any]]] = [
        ("there is no entry 'half'; GP_ENTRY has made twice, and no other", lambda k: k.gpsimd.run(image, "half")),
        ("no core 4 in the GPSIMD engine of small, which has 4", lambda k: k.gpsimd.load(image, [0, 4])),
        ("no core -1 in", lambda k: k.gpsimd.run(image, cores=[-1])),
        ("at least one core", lambda k: k.gpsimd.run(image, cores=[])),
        ("no core 9 in", lambda k: k.gpsimd.store(sbuf(k), 0, core=9)),
        (
            "src0 of twice.elf is sums in PSUM; GPSIMD cores reach SBUF only",
            lambda k: k.gpsimd.run(image, src=k.psum("sums", partitions=8, columns=4)[:, :]),
        ),
        ("what twice.elf touches is s in PSUM", lambda k: k.gpsimd.run(image, touches=[psum(k)])),
        ("the destination of local memory is s in PSUM", lambda k: k.gpsimd.store(psum(k), 0)),
        ("argument 2 of twice.elf is -1; it has 64 bits", lambda k: k.gpsimd.run(image, args=(0, -1))),
        ("a watchdog of 16777216 GPSIMD cycles", lambda k: k.gpsimd.run(image, watchdog_cycles=1 << 24)),
        ("needs extension f, and a core of small has", lambda k: k.gpsimd.load(float_)),
        ("takes 73,728 bytes, 0 of them stack, and local memory", lambda k: k.gpsimd.load(large)),
        ("section .data lies at 0x20000000, outside local memory", lambda k: k.gpsimd.load(outside)),
        ("has vector instructions in add, and cores of small have no vectors", lambda k: k.gpsimd.load(vectors)),
        ("none.elf cannot be read: No such file", lambda k: k.gpsimd.load(tmp_path / "none.elf")),
        ("as uint32 on 8 partitions, not as uint32 on 4", lambda k: k.gpsimd.store(sbuf(k, partitions=4), 0)),
        ("as uint32 on 8 partitions, not as int32 on 8", lambda k: k.gpsimd.store(sbuf(k, dtype="int32"), 0)),
        ("from a multiple of 32 bytes on, not from 16", lambda k: k.gpsimd.store(sbuf(k), 16)),
        ("128 bytes of local memory from 65440 on end behind", lambda k: k.gpsimd.store(sbuf(k), 65536 - 96)),
        ("image must be a", lambda k: k.gpsimd.load(7)),
    ]
    for says, what in cases:
        with pytest.raises(KernelError) as error:
            what(Kernel(SCALAR, "refused"))
        assert says in str(error.value) and "\n" not in str(error.value)


def psum(k: Kernel) -> Any:
    return k.psum("s", partitions=8, columns=4)[:, :]


def test_a_configuration_without_the_engine(image: Path) -> None:
    cfg = load("small", ["gpsimd.enabled=false"])
    for what in (lambda k: k.gpsimd.load(image), lambda k: k.gpsimd.run(image), lambda k: k.gpsimd.store(sbuf(k), 0)):
        with pytest.raises(KernelError, match="configuration small has no programmable engine: gpsimd.enabled is fal"):
            what(Kernel(cfg, "refused"))


def adds_one(path: Path, source: int, result: int) -> Path:
    """A program that stores the first word of one tile plus 1 to that of another, in its first partition."""
    rows, mailbox = int(Region.SBUF_ROWS), int(Region.MAILBOX)
    text = load_constant(10, rows + source) + immediate(0x03, 2, 11, 10, 0) + immediate(0x13, 0, 11, 11, 1)
    text += load_constant(12, rows + result) + storing(2, 11, 12, 0)
    text += load_constant(13, mailbox + Mailbox.DONE) + storing(2, 0, 13, 0) + jump(0, 0)
    path.write_bytes(elf([code(LOCAL, text)], entry=LOCAL))
    return path


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_any_order_that_the_waits_allow_gives_the_same(tmp_path: Path, seed: int | None) -> None:
    """Two programs in turn on the same cores, beside copies and the vector engine, tiles used again at once."""
    k = Kernel(TINY, "chain")
    a, b, c = (k.sbuf(name, partitions=8, columns=1, dtype="uint32") for name in "abc")
    first = adds_one(tmp_path / "first.elf", a.offset, b.offset)
    second = adds_one(tmp_path / "second.elf", b.offset, a.offset)
    words = k.sbuf("words", partitions=4, columns=2, dtype="uint32")
    source = k.hbm("source", (8, 1), "uint32", np.full((8, 1), 100, np.uint32))
    outs = [k.hbm(f"out {n}", (8, 1), "uint32") for n in range(6)]
    k.dma(a[:, :], source[:, :])
    for n in range(3):
        k.gpsimd.run(first, src=a[:, :], dst=b[:, :])
        k.dma(outs[2 * n][:, :], b[:, :])
        k.gpsimd.run(second, touches=[a[:, :], b[:, :]])
        k.vector.copy(c[:, :], a[:, :])
        k.dma(outs[2 * n + 1][:, :], c[:, :])
    k.gpsimd.store(words[:, :], 0, core=1)
    local = k.hbm("local", (4, 2), "uint32")
    k.dma(local[:, :], words[:, :])
    assert len(queue(k, Opcode.GP_LOAD)) == 6
    machine = GoldenMachine(TINY, seed)
    machine.load(build_image(k.program()))
    result = machine.run()
    assert not result.faults
    for n in range(6):
        assert [result.outputs[f"out {n}"][core, 0] for core in (0, 4)] == [101 + n] * 2  # of 4 partitions each
    text = np.frombuffer(second.read_bytes()[52 : 52 + 32], "<u4")
    assert np.array_equal(result.outputs["local"].T.reshape(-1), text)
