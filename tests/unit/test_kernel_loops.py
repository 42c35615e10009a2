"""Loops of the kernel language: the program of the same kernel in Python's loops, in fewer words; what is refused."""

from collections.abc import Callable

import numpy as np
import pytest

from firmware.assemble import instruction_word
from firmware.image import Image, build_image
from firmware.kernel import Kernel, KernelError
from firmware.numbers import encode
from firmware.program import Instruction, Place, Program
from rtl.contract.config import named
from rtl.contract.isa import INSTRUCTION_BYTES, Opcode, Queue
from rtl.contract.memmap import Space
from verif.golden.machine import GoldenMachine
from verif.golden.sequencer import Sequencer

CFG = named("tiny")
P = CFG.partitions
BLOCKS, WIDTH = 12, 16


class Setting:
    """A kernel with an input, an output and tiles for them."""

    def __init__(self) -> None:
        self.k = k = Kernel(CFG, "blocks")
        bits = encode(np.arange(P * BLOCKS * WIDTH).reshape(P, -1) % 97, "bf16")
        self.x = k.hbm("x", (P, BLOCKS * WIDTH), "bf16", bits)
        self.y = k.hbm("y", (P, BLOCKS * WIDTH), "fp32")
        self.tile = k.sbuf("tile", partitions=P, columns=BLOCKS * WIDTH, dtype="bf16")
        self.slots = [k.sbuf(f"slot{n}", partitions=P, columns=WIDTH, dtype="bf16") for n in range(2)]
        self.out = k.sbuf("out", partitions=P, columns=BLOCKS * WIDTH, dtype="fp32")
        self.sums = k.psum("sums", partitions=P, columns=2 * WIDTH)


def block(i: int) -> slice:
    return slice(i * WIDTH, (i + 1) * WIDTH)


def products(s: Setting, i: int, taken: slice) -> None:
    """A product of a block, out by the vector engine and to HBM."""
    half = i % 2
    s.k.tensor.load(s.tile[:, 0:P])
    s.k.tensor.matmul(s.tile[:, taken], s.sums[:, half * WIDTH : (half + 1) * WIDTH])
    s.k.vector.copy(s.out[:, taken], s.sums[:, half * WIDTH : (half + 1) * WIDTH])
    s.k.dma(s.y[:, taken], s.out[:, taken])


def straight(s: Setting) -> None:
    for i in range(BLOCKS):
        s.k.dma(s.tile[:, block(i)], s.x[:, block(i)])
        products(s, i, block(i))


def looped(s: Setting) -> None:
    with s.k.loop(BLOCKS) as i:
        s.k.dma(s.tile[:, block(i)], s.x[:, block(i)])
        products(s, i, block(i))


def marked(s: Setting) -> None:
    for i in s.k.turns(range(BLOCKS)):
        s.k.dma(s.tile[:, block(i)], s.x[:, block(i)])
        products(s, i, block(i))


def nest_straight(s: Setting) -> None:
    for i in range(3):
        for j in range(4):
            s.k.vector.tensor_scalar(s.out[:, block(4 * i + j)], s.tile[:, block(11 - j)], "multiply", 2.0)
            if j > 1:
                s.k.scalar.copy(s.out[:, block(4 * i + j)], s.out[:, block(j)])
        s.k.barrier(Queue.SYNC)


def nest_looped(s: Setting) -> None:
    with s.k.loop(3) as i:
        with s.k.loop(4) as j:
            s.k.vector.tensor_scalar(s.out[:, block(4 * i + j)], s.tile[:, block(11 - j)], "multiply", 2.0)
            with s.k.if_(j > 1):
                s.k.scalar.copy(s.out[:, block(4 * i + j)], s.out[:, block(j)])
        s.k.barrier(Queue.SYNC)


def nest_mixed(s: Setting) -> None:
    """A loop of Python in a loop, whose turns are marked."""
    with s.k.loop(3) as i:
        for j in s.k.turns(range(4)):
            s.k.vector.tensor_scalar(s.out[:, block(4 * i + j)], s.tile[:, block(11 - j)], "multiply", 2.0)
            if j > 1:
                s.k.scalar.copy(s.out[:, block(4 * i + j)], s.out[:, block(j)])
        s.k.barrier(Queue.SYNC)


def slots_straight(s: Setting) -> None:
    """Two tiles by turns; a store behind the copy of its own turn."""
    for i in range(BLOCKS):
        slot = s.slots[i % 2]
        done = s.k.dma(slot[:, :], s.x[:, block(i)], ring=0)
        s.k.vector.copy(s.out[:, block(i)], slot.view().split(0, 4).permute((1, 0)))
        s.k.dma(s.y[:, block(i)], s.out[:, block(i)], after=[done])


def slots_looped(s: Setting) -> None:
    with s.k.loop(BLOCKS) as i:
        slot = s.k.pick(s.slots, i % 2)
        done = s.k.dma(slot[:, :], s.x[:, block(i)], ring=0)
        s.k.vector.copy(s.out[:, block(i)], slot.view().split(0, 4).permute((1, 0)))
        s.k.dma(s.y[:, block(i)], s.out[:, block(i)], after=[done])


def program(*bodies: Callable[[Setting], None]) -> Program:
    setting = Setting()
    for body in bodies:
        body(setting)
    return setting.k.program()


def words(image: Image, queue: Queue) -> list[int]:
    memory, (base, count) = image.memory(), image.queues[queue]
    rows = memory[base : base + count * INSTRUCTION_BYTES].reshape(count, INSTRUCTION_BYTES)
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def items(one: Program) -> dict[Queue, list[bytes]]:
    return {queue: [instruction_word(i) for i in found] for queue, found in one.queues.items()}


@pytest.mark.parametrize(
    ("body", "loop"),
    [
        (straight, looped),
        (straight, marked),
        (nest_straight, nest_looped),
        (nest_straight, nest_mixed),
        (slots_straight, slots_looped),
    ],
)
def test_a_loop_is_the_same_program(body: Callable[[Setting], None], loop: Callable[[Setting], None]) -> None:
    plain, looping = program(body), program(loop)
    assert items(looping) == items(plain)
    bare = [[(d.source, d.destination, d.dims, d.signal) for d in ring] for ring in looping.rings]
    assert bare == [[(d.source, d.destination, d.dims, d.signal) for d in ring] for ring in plain.rings]
    assert not any(plain.loops.values()) and any(looping.loops.values())


@pytest.mark.parametrize("loop", [looped, marked, nest_looped, nest_mixed, slots_looped])
def test_queues_show_what_the_program_says(loop: Callable[[Setting], None]) -> None:
    one = program(loop, straight, loop)
    image = build_image(one)
    for queue in Queue:
        shown = [s.word.to_bytes(INSTRUCTION_BYTES, "little") for s in Sequencer(words(image, queue), lambda n: 0, 64)]
        assert shown == [instruction_word(i) for i in one.queues[queue]]


@pytest.mark.parametrize("loop", [looped, nest_looped, slots_looped])
def test_the_golden_machine_runs_them(loop: Callable[[Setting], None]) -> None:
    one, found = program(loop), []
    for rolled in (False, True):
        machine = GoldenMachine(CFG)
        machine.load(build_image(one, rolled=rolled))
        found.append(machine.run().outputs["y"])
    assert np.array_equal(*found)


def test_words_are_fewer() -> None:
    one = program(looped)
    rolled, plain = build_image(one), build_image(one, rolled=False)
    assert plain.queues[Queue.TENSOR][1] == len(one.queues[Queue.TENSOR])
    assert rolled.queues[Queue.TENSOR][1] < plain.queues[Queue.TENSOR][1] / 2
    assert rolled.hbm_bytes < plain.hbm_bytes


def test_words_that_name_places_in_hbm_roll_too() -> None:
    """Addresses are known once everything has its place."""
    one = program()
    place = [Place(Space.HBM, 64 * n, "x") for n in range(20)]
    one.queues[Queue.GPSIMD] = [Instruction(opcode=Opcode.GP_RUN, update=3, place1=at, imm0=7) for at in place]
    one.loops = {Queue.GPSIMD: [tuple(range(21))]}
    image = build_image(one)
    assert image.queues[Queue.GPSIMD][1] <= 3
    offsets = {(one.core, name): region.offset for name, region in image.tensors.items()}
    shown = [s.word for s in Sequencer(words(image, Queue.GPSIMD), lambda n: 0, 64)]
    assert shown == [int.from_bytes(instruction_word(i, offsets), "little") for i in one.queues[Queue.GPSIMD]]


def test_a_program_without_loops_is_laid_out_as_ever() -> None:
    one = program(straight)
    assert build_image(one).queues == build_image(one, rolled=False).queues


def test_lines_are_those_of_the_body() -> None:
    one = program(looped)
    line = looped.__code__.co_firstlineno + 2
    assert {d.origin.rpartition(":")[2] for d in one.rings[0]} == {str(line)}
    here = products.__code__.co_firstlineno
    assert [i.source.rpartition(":")[2] for i in one.queues[Queue.TENSOR][:2]] == [str(here + 3), str(here + 4)]


def test_a_loop_without_turns_says_nothing() -> None:
    def body(s: Setting) -> None:
        with s.k.loop(0) as i:
            products(s, i, block(i))

    assert not any(program(body).queues.values())


def test_a_condition_outside_of_loops() -> None:
    def body(s: Setting) -> None:
        for holds in (True, False):
            with s.k.if_(holds):
                s.k.vector.nop()

    assert len(program(body).queues[Queue.VECTOR]) == 1


def test_one_of_two_values_by_a_condition() -> None:
    def body(s: Setting) -> None:
        with s.k.loop(4) as i:
            s.k.tensor.load(s.tile[:, 0:P])
            s.k.tensor.matmul(s.tile[:, 0:WIDTH], s.sums[:, 0:WIDTH], accumulate=i > 0)
            s.k.vector.copy(s.out[:, block(i)], s.k.pick((s.tile[:, block(7)], s.tile[:, block(9)]), i < 2))

    one = program(body)
    assert [i.accumulate for i in one.queues[Queue.TENSOR][1::2]] == [False, True, True, True]
    sources = [i.src0.offset for i in one.queues[Queue.VECTOR] if i.src0]
    assert sources[0] == sources[1] and sources[2] == sources[3] == sources[0] - 2 * 2 * WIDTH


def test_tiles_of_a_body_are_made_once() -> None:
    def body(s: Setting) -> None:
        with s.k.loop(3) as i:
            inner = s.k.sbuf("inner", partitions=P, columns=3 * WIDTH, dtype="fp32")
            s.k.vector.copy(inner[:, block(i)], s.tile[:, block(i)])

    one = program(body)
    assert len(one.queues[Queue.VECTOR]) == 3
    assert [t.name for t in one.tiles].count("inner") == 1


def test_what_a_statement_returned_last_is_known_behind_the_loop() -> None:
    def body(s: Setting) -> None:
        with s.k.loop(3) as i:
            done = s.k.dma(s.tile[:, block(i)], s.x[:, block(i)])
        s.k.dma(s.y[:, block(0)], s.out[:, block(0)], after=[done])

    assert [w.value for w in program(body).queues[Queue.GPSIMD][-1].waits] == [3]


def test_a_loop_that_is_left_early_has_the_turns_it_had() -> None:
    def body(s: Setting) -> None:
        for i in s.k.turns(range(9)):
            if i == 4:
                break
            s.k.vector.nop()

    assert program(body).loops[Queue.VECTOR] == [(0, 1, 2, 3, 4, 4)]


def refused(body: Callable[[Setting, int], None]) -> str:
    setting = Setting()
    with pytest.raises(KernelError) as error, setting.k.loop(4) as i:
        body(setting, i)
    return str(error.value)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda s, i: int(i), "Python asks for the int of the index of the loop at "),
        (lambda s, i: s.slots[i], "of several tiles k.pick(tiles, i) is one"),
        (lambda s, i: range(i), "a loop in a loop is another k.loop"),
        (lambda s, i: list(i), "Python asks for the elements of the index"),
        (lambda s, i: min(i, 2), "a block is left out by `with k.if_(...):`, and of two values k.pick((a, b), i < 3)"),
        (lambda s, i: s.k.sbuf(f"tile{i}", partitions=P, columns=1, dtype="fp32"), "is made once, under one name"),
        (lambda s, i: i / 2, "there is no half of the index of the loop at "),
        (lambda s, i: bool(i + 1 < 3), "Python asks for the truth of an expression with the index of the loop at "),
        (lambda s, i: float(s.tile[:, block(i)]), "Python asks for the float of a view or a result"),
        (lambda s, i: s.k.sbuf("late", partitions=P, columns=i, dtype="fp32"), "are settled before the first one"),
        (lambda s, i: s.k.loop(i), "how often a loop turns are settled before the first one"),
        (lambda s, i: s.k.loop(-1), "a loop has at least 0 turns, not -1"),
        (lambda s, i: s.k.program(), "a program is finished behind its loops, not in the body of one"),
        (lambda s, i: s.k.vector.foo(i), "there is no k.vector.foo"),
        (lambda s, i: s.k.vector.copy(s.out[:, block(i)], i), "src must be a view of a tile"),
        (lambda s, i: s.k.vector.copy(s.out[:, block(i)], s.tile[:, block(i)].nothing), "an argument has no value: "),
        (lambda s, i: s.k.vector.copy(s.out[:, block(i)], s.tile[:, block(12 // i)]), "no value: integer div"),
    ],
)
def test_what_a_body_may_not_do(body: Callable[[Setting, int], None], says: str) -> None:
    assert says in refused(body)


def test_an_error_names_its_statement_and_turns() -> None:
    def body(s: Setting, i: int) -> None:
        with s.k.loop(2) as j:
            s.k.vector.copy(s.out[:, 0:16], s.tile[:, (i + j) * 64 : (i + j) * 64 + 16])

    first = body.__code__.co_firstlineno
    text = refused(body)
    assert text.startswith("tile has 192 elements along axis 1; the index 192:208:1 is not inside (")
    assert f"test_kernel_loops.py:{first + 2} in turn 1 of the loop at " in text
    assert f"test_kernel_loops.py:{first + 1}, turn 2 of the loop at " in text and text.endswith(")")


def test_an_index_has_no_value_behind_its_loop() -> None:
    setting = Setting()
    with setting.k.loop(4) as i:
        pass
    with pytest.raises(KernelError, match="has a value in the turns of its loop only"):
        setting.k.vector.copy(setting.out[:, block(i)], setting.tile[:, block(i)])


def test_another_kernel_is_not_in_the_loop() -> None:
    near, far = Setting(), Setting()
    with near.k.loop(4) as i, pytest.raises(KernelError, match="src must be a view of a tile"):
        far.k.vector.copy(far.out[:, 0:16], near.tile[:, block(i)])


def test_a_result_is_not_used_before_it_is_there() -> None:
    def body(s: Setting, i: int) -> None:
        with s.k.if_(i > 1):
            done = s.k.dma(s.tile[:, block(i)], s.x[:, block(i)])
        s.k.dma(s.y[:, block(i)], s.out[:, block(i)], after=[done])

    assert "what k.dma at " in refused(body) and "is used before it has been executed" in refused(body)


def test_a_body_that_fails_says_nothing() -> None:
    setting = Setting()

    def body() -> None:
        with setting.k.loop(4):
            setting.k.vector.nop()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body()
    setting.k.scalar.nop()
    assert [len(found) for found in setting.k.program().queues.values()] == [0, 0, 1, 0, 0]


def test_an_instruction_knows_its_turn() -> None:
    """In faults and traces its line stands with it, of loops in loops the outer turn first."""
    k = Kernel(CFG, "turns")
    tile = k.sbuf("tile", partitions=P, columns=64, dtype="bf16")
    k.vector.memset(tile[:, :], 0.0)
    with k.loop(2) as i:
        k.vector.memset(tile[:, i : i + 1], 0.0)
        with k.loop(3) as j:
            k.vector.memset(tile[:, j : j + 1], 0.0)
    k.vector.memset(tile[:, :], 0.0)
    program = k.program()
    assert program.turns(Queue.VECTOR) == ["", "0", "0.0", "0.1", "0.2", "1", "1.0", "1.1", "1.2", ""]
    assert program.turns(Queue.SYNC) == []
    line = program.queues[Queue.VECTOR][7].source
    assert program.source(Queue.VECTOR, 7) == f"{line}, turn 1.1" and program.source(Queue.VECTOR, 9)[-1].isdigit()
    assert program.source(Queue.VECTOR, 10) == ""
