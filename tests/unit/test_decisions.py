"""Kernels whose runs decide: numbers, what a queue executes for each of them, what is refused."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import plexus
from firmware.assemble import instruction_word
from firmware.decisions.executed import executed_program, given_registers, tensor_columns
from firmware.decisions.numbers import Condition, Number, Register, value_of
from firmware.decisions.regions import Region
from firmware.decisions.steps import End, Guard, Items, Read
from firmware.decisions.words import queue_words
from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.program import Instruction, Program
from firmware.workloads import find_workload
from rtl.contract.config import named
from rtl.contract.isa import INSTRUCTION, Opcode, Queue
from verif.checks.deciding_kernels import paged, where_pages_go
from verif.checks.random_decisions import MOST, REGISTERS, deciding_kernel
from verif.golden.machine import GoldenMachine
from verif.golden.sequencer import Sequencer

CFG = named("tiny")
P = CFG.partitions


def nop(number: int) -> int:
    return INSTRUCTION.pack(update_value=number)


def registers(*highs: int) -> list[Register]:
    return [Register(n, f"n{n}", 0, high, "here") for n, high in enumerate(highs)]


def expressions(a: Number, b: Number) -> list[Number]:
    return [
        a + b, a - b, 7 - a, -a, a * b, 3 * a - 5, a << 2, a >> 1, b // 4, -(-a // 2), a % 4, a.at_most(3),
        b.at_least(a), (a + 2) * (b - 3) % 8, a.at_most(b) - a.at_least(2) * b,
    ]  # fmt: skip


def conditions(a: Number, b: Number) -> list[Condition]:
    return [a < b, a <= b, a > b, a >= b, a == b, a != b, a < 3, a <= 3, a > 3, a >= 3, a == 3, a != 3, 3 < a,
            ~(a < b), a + b < 6, a * b == 4, a - b > -2]  # fmt: skip


def told(a: int, b: int) -> list[bool]:
    return [a < b, a <= b, a > b, a >= b, a == b, a != b, a < 3, a <= 3, a > 3, a >= 3, a == 3, a != 3, 3 < a,
            not a < b, a + b < 6, a * b == 4, a - b > -2]  # fmt: skip


def test_numbers_are_what_python_says() -> None:
    a, b = registers(5, 6)
    for x, y in product(range(6), range(7)):
        values = {0: x, 1: y}
        want = [
            x + y, x - y, 7 - x, -x, x * y, 3 * x - 5, x << 2, x >> 1, y // 4, -(-x // 2), x % 4, min(x, 3), max(y, x),
            (x + 2) * (y - 3) % 8, min(x, y) - max(x, 2) * y,
        ]  # fmt: skip
        found = expressions(a, b)
        assert [value_of(number, values) for number in found] == want
        assert all(number.low <= value <= number.high for number, value in zip(found, want, strict=True))
        assert [one.holds(values) for one in conditions(a, b)] == told(x, y)


def test_a_sequencer_decides_as_python_does() -> None:
    """Each condition as a guard of a word: it is shown where it holds; else what stands instead."""
    a, b = registers(5, 6)
    for condition, n in zip(conditions(a, b), range(99), strict=False):
        region = Region("here")
        instead = (Instruction(opcode=Opcode.NOP, update=0, adds=9),)
        steps = [Read(a, ()), Read(b, ()), Items(0, 1), Guard(condition, region, instead), Items(1, 2), End(region)]
        words = queue_words(
            [*steps, Items(2, 3)],
            [nop(1), nop(2), nop(3)],
            lambda i: nop(i.adds),
            lambda register: 100 + register.index,
        )
        for x, y in product(range(6), range(7)):
            shown = list(Sequencer(words, lambda _: 0, 1, load={100: x, 101: y}.__getitem__))
            values = [INSTRUCTION.unpack(one.word)["update_value"] for one in shown]
            assert not any(one.cause for one in shown)
            assert values == [1, 2 if told(x, y)[n] else 9, 3], (n, x, y)


def shown_is_executed(program: Program, values: dict[int, int]) -> None:
    """The words of the image become those of the program that a run with these numbers executes."""
    image = build_image(program)
    plain = executed_program(program, values)
    assert not any(plain.steps.values())
    hbm = image.memory()
    offsets = {(0, name): region.offset for name, region in image.tensors.items()}
    for queue in Queue:
        base, count = image.queues[queue]
        code = hbm[base : base + 128 * count].reshape(-1, 128)
        words = [int.from_bytes(word.tobytes(), "little") for word in code]
        shown = [one.word for one in Sequencer(words, lambda _: 0, 1, load=hbm.view("<i4").tolist().__getitem__)]
        want = [int.from_bytes(instruction_word(i, offsets), "little") for i in plain.queues[queue]]
        assert shown == want
        assert image.instructions[queue] == len(want)
        assert len(plain.turns(queue)) == len(want)


@pytest.mark.parametrize("seed", range(6))
def test_a_queue_shows_what_is_executed(seed: int) -> None:
    """For every choice of numbers the words of the program become those of the program that has been executed."""
    for values in list(product(range(MOST + 1), repeat=REGISTERS))[:: 7 + seed]:
        program = deciding_kernel(CFG, seed, values, known=False, statements=10)
        assert given_registers(program) == dict(enumerate(values))
        shown_is_executed(program, dict(enumerate(values)))


@pytest.mark.parametrize("seed", range(100, 112))
def test_what_a_run_decides_is_what_the_kernel_would(seed: int) -> None:
    """Bits are those of the kernel that knows its numbers, in any order that the contract allows."""
    rng = np.random.default_rng(seed)
    for _ in range(2):
        values = rng.integers(MOST + 1, size=REGISTERS).tolist()
        want = GoldenMachine(CFG)
        want.load(build_image(deciding_kernel(CFG, seed, values, known=True)))
        expected = want.run()
        assert not expected.faults
        image = build_image(deciding_kernel(CFG, seed, values, known=False))
        for order in (None, 1, 2, 3):
            machine = GoldenMachine(CFG, order)
            machine.load(image)
            found = machine.run()
            assert not found.faults
            for name, bits in expected.outputs.items():
                assert np.array_equal(found.outputs[name], bits), (values, order, name)


@pytest.mark.parametrize(
    ("workload", "settings"),
    [("gemm", ["m=40", "k=24", "n=20"]), ("gemm", ["m=16", "k=16", "n=16", "dtype=fp32"]), ("attention", ["seq=40"])],
)
def test_columns_are_counted_as_kernels_do(workload: str, settings: list[str]) -> None:
    cfg = named("small")
    one = find_workload(workload)
    program = one.build(cfg, one.parse(settings), 1)
    assert tensor_columns(program.queues[Queue.TENSOR], cfg.tensor) == program.tensor_columns


class Setting:
    """A kernel with a number, an input, an output and tiles for them."""

    def __init__(self, most: int = 4):
        self.k = k = Kernel(CFG, "blocks")
        self.number = k.hbm("n", (1,), "int32", np.array([2], np.uint32))
        self.x = k.hbm("x", (P, 16), "bf16", np.zeros((P, 16), np.uint16))
        self.y = k.hbm("y", (P, 16), "bf16")
        self.tile = k.sbuf("tile", partitions=P, columns=16, dtype="bf16")
        self.n = k.register(self.number, most)
        self.sums = k.psum("sums", partitions=P, columns=16)


def test_an_engine_that_may_hold_something_else_is_loaded_anew() -> None:
    s = Setting()
    s.k.tensor.load(s.tile[:, :P])
    with s.k.if_(s.n > 1):
        s.k.tensor.matmul(s.tile[:, :], s.sums[:, :])  # the same operand in both cases
    s.k.tensor.matmul(s.tile[:, :], s.sums[:, :])
    s.k.scalar.load_table(["exp"])
    with s.k.if_(s.n > 1):
        s.k.tensor.load(s.tile[:, P : 2 * P])
        s.k.scalar.load_table(["gelu"])
    with pytest.raises(KernelError, match="needs a stationary operand loaded before it"):
        s.k.tensor.matmul(s.tile[:, :], s.sums[:, :])
    with pytest.raises(KernelError, match="exp is not in the table loaded last"):
        s.k.scalar.activation(s.tile[:, :], s.tile[:, :], "exp")


def test_an_operand_that_may_wait_for_a_matmul_waits() -> None:
    s = Setting()
    s.k.tensor.load(s.tile[:, :P])
    with s.k.if_(s.n > 1):
        s.k.tensor.matmul(s.tile[:, :], s.sums[:, :])
    with pytest.raises(KernelError, match="would overwrite the stationary operand tile"):
        s.k.tensor.transpose(s.tile[:, :P], s.sums[:, :P])
    s.k.tensor.matmul(s.tile[:, :], s.sums[:, :])
    s.k.tensor.transpose(s.tile[:, :P], s.sums[:, :P])


def shown_values(program: Program, queue: Queue) -> list[int]:
    """Immediates of the MEMSETs of a queue's image."""
    image = build_image(program)
    hbm = image.memory()
    base, count = image.queues[queue]
    words = [int.from_bytes(w.tobytes(), "little") for w in hbm[base : base + 128 * count].reshape(-1, 128)]
    shown = list(Sequencer(words, lambda _: 0, 1, load=hbm.view("<i4").tolist().__getitem__))
    assert not any(one.cause for one in shown)
    found = [INSTRUCTION.unpack(one.word) for one in shown]
    return [int(np.uint32(f["imm0"]).view(np.float32)) for f in found if f["opcode"] == Opcode.MEMSET]


@pytest.mark.parametrize("count", [12, 13, 14])
def test_the_register_of_zeros_stays(count: int) -> None:
    """Numbers of as many operations as there may be, and one behind them that compares with nothing."""
    s = Setting()
    number = s.n
    for _ in range(count - 1):
        number = number + 1
    with s.k.if_(number > count):  # 2 + count - 1
        s.k.vector.memset(s.tile[:, :], 1.0)
    with s.k.if_(s.n < 3):
        s.k.vector.memset(s.tile[:, :], 2.0)
    with s.k.if_(s.n == 0):
        s.k.vector.memset(s.tile[:, :], 3.0)
    assert shown_values(s.k.program(), Queue.VECTOR) == [1, 2]


def test_turns_in_which_a_queue_has_nothing_cost_it_nothing() -> None:
    """A queue with work in the last of many turns looks at the number once, and not 5,000 times in a row."""
    s = Setting(6000)
    s.k.vector.memset(s.tile[:, :], 1.0)
    with s.k.loop(s.n) as i, s.k.if_(i == 5999):
        s.k.vector.memset(s.tile[:, :], 2.0)
    assert shown_values(s.k.program(), Queue.VECTOR) == [1]
    few = Setting(6000)
    with few.k.loop(few.n) as i, few.k.if_(i == 1):
        few.k.vector.memset(few.tile[:, :], 2.0)
    program = few.k.program()
    assert shown_values(program, Queue.VECTOR) == [2]
    assert len([one for one in program.steps[Queue.VECTOR] if isinstance(one, Guard)]) == 1


@pytest.mark.parametrize("n", [0, 2])
def test_copies_that_signal_are_counted_before_a_block(n: int) -> None:
    """What a block may leave out is nothing that later copies count on."""
    k = Kernel(CFG, "signals")
    number = k.hbm("n", (1,), "int32", np.array([n], np.uint32))
    x = k.hbm("x", (P, 16), "bf16", np.full((P, 16), 7, np.uint16))
    y, z = k.hbm("y", (P, 16), "bf16"), k.hbm("z", (P, 16), "bf16")
    a, b = (k.sbuf(name, partitions=P, columns=16, dtype="bf16") for name in "ab")
    done = k.semaphore("done")
    k.dma(a[:, :], x)
    k.vector.memset(b[:, :], 2.0)
    k.dma(y, a[:, :], signal=done)
    k.wait(Queue.GPSIMD, done, 1)
    with k.if_(k.register(number, 4) > 1):
        k.vector.memset(a[:, :], 1.0)
        k.dma(b[:, :], x, direct=True)
    k.dma(z, b[:, :])
    image = build_image(k.program())
    for order in (None, 1, 2, 3):
        machine = GoldenMachine(CFG, order)
        machine.load(image)
        found = machine.run()
        assert not found.faults and np.all(found.outputs["y"] == 7)
        assert np.all(found.outputs["z"] == (7 if n > 1 else 0x4000))


def test_macs_are_those_of_what_a_run_executes() -> None:
    def kernel(k: Kernel, x: Any, live: Any) -> None:
        tile = k.sbuf("tile", partitions=P, columns=16, dtype="fp16")
        sums = k.psum("sums", partitions=P, columns=16)
        k.dma(tile[:, :], x)
        out = k.sbuf("out", partitions=P, columns=16, dtype="fp32")
        k.vector.memset(out[:, :], 0.0)
        with k.loop(k.register(live[0:1], 10)):
            k.tensor.load(tile[:, :P])
            k.tensor.matmul(tile[:, :], sums[:, :])
            k.vector.copy(out[:, :], sums[:, :])
        k.dma(k.hbm("y", (P, 16), "fp32"), out[:, :])

    for live in (0, 3):
        given = {"x": np.ones((P, 16), np.float16), "live": np.array([live], np.int32)}
        result = plexus.run(kernel, given, config="tiny", device="golden")
        assert result.report["macs"] == live * P * P * 16


def test_a_number_far_beyond_its_bounds_is_told_too() -> None:
    """What is reckoned with it wraps as in a sequencer."""
    a = Register(0, "n", 0, 4, "here")
    for value in (-1, 1 << 31 - 1, -(1 << 31)):
        for number in (1 - a >> 1, a << a.at_most(3), a * 1000, a % 4, -a // 2):
            assert -(1 << 31) <= value_of(number, {0: value}) < 1 << 31


def test_remainders_have_the_bounds_that_they_have() -> None:
    n = Register(0, "n", 0, 100, "here")
    assert ((n % 8).low, (n % 8).high) == (0, 7)
    assert [value_of((n - 50) % 8, {0: v}) for v in (0, 3, 99)] == [-50 % 8, -47 % 8, 49 % 8]


def test_queues_that_a_register_does_not_concern_stay_as_they_are() -> None:
    s = Setting()
    with s.k.if_(s.n > 1):
        s.k.vector.memset(s.tile[:, :], 1.0)
    s.k.dma(s.y, s.tile[:, :])
    program = s.k.program()
    assert [queue for queue, steps in program.steps.items() if steps] == [Queue.VECTOR]
    assert build_image(program).queues[Queue.GPSIMD][1] == len(program.queues[Queue.GPSIMD])


def _in_block(do: Callable[[Setting], object]) -> Callable[[Setting], None]:
    def inside(s: Setting) -> None:
        with s.k.if_(s.n > 1):
            do(s)

    return inside


def _truth(s: Setting) -> None:
    if s.n > 1:
        s.k.vector.nop()


def _changed(s: Setting) -> None:
    k = s.k
    inner = k.hbm("inner", (1,), "int32", inner=True)
    tile = k.sbuf("one", partitions=1, columns=1, dtype="int32")
    k.register(inner, 3)
    k.dma(inner, tile[:, :])


def _long(s: Setting, count: int) -> None:
    number = s.n
    for _ in range(count):
        number = number + 1
    with s.k.if_(number > 3):
        s.k.vector.nop()


def _in_block_of(s: Setting, number: Number) -> None:
    with s.k.if_(number > 1):
        s.k.vector.nop()


def _five(s: Setting) -> None:
    x = s.k.hbm("many", (5,) * 5 + (16,), "bf16", np.zeros((5,) * 5 + (16,), np.uint16))
    s.k.dma(s.tile[0:1, :], x[(s.n,) * 5].split(0, 16))


WRONG: dict[str, tuple[Callable[[Setting], object], str]] = {
    "Python's if": (_truth, "a block is left out by `with k.if_"),
    "truth of a number": (lambda s: bool(s.n), "a block is left out by `with k.if_"),
    "an index of a tile": (lambda s: s.tile[:, s.n : s.n + 1], "an axis of a tensor in HBM"),
    "a page that there is not": (lambda s: s.x[s.n + 5, :], "x has 8 elements along axis 0, and a number from 5 to 9"),
    "a page below the first": (lambda s: s.x[s.n - 1, :], "may be from -1 to 3"),
    "rows from a number on": (lambda s: s.x[s.n : s.n + 1, :], "an axis of a tensor in HBM"),
    "a ring for what is moved": (
        lambda s: s.k.dma(s.tile[0:1, :].split(0, 16), s.x[s.n, :].split(0, 16), ring=0),
        "goes to its queue's own ring",
    ),
    "a register in another's place": (
        lambda s: s.k.register(s.k.hbm("m", (9, 1), "int32", np.zeros((9, 1), np.uint32))[s.n, 0:1], 3),
        "lies in one place",
    ),
    "too many numbers": (_five, "that 5 numbers move; there may be 4"),
    "a comparison with 3.0": (lambda s: s.n == 3.0, "whole numbers and registers, not with 3.0"),
    "1.5 more": (lambda s: s.n + 1.5, "whole numbers and registers, not with 1.5"),
    "both of two": (lambda s: (s.n > 1) & (s.n < 3), "a block is in a block"),  # type: ignore[operator]
    "a number divided by it": (lambda s: 5 // s.n, "it is reckoned with by"),  # type: ignore[operator]
    "a power": (lambda s: s.n**2, "it is reckoned with by"),  # type: ignore[operator]
    "beyond 32 bits": (lambda s: s.n > 3 * 10**9, "does not fit a register of 32 bits"),
    "at most 2^40": (lambda s: s.n.at_most(1 << 40), "does not fit a register of 32 bits"),
    "too many operations": (lambda s: _long(s, 15), "has more than 14 parts at once"),
    "a register of another kernel": (lambda s: _in_block_of(Setting(), s.n), "is one of another kernel"),
    "a wait for what has been read": (
        lambda s: s.k.wait(Queue.SYNC, s.k.semaphore("come"), 1, s.number),
        "has been read as a register",
    ),
    "a range": (lambda s: range(s.n), "k.loop and k.if_ take it as it is"),  # type: ignore[arg-type]
    "half of it": (lambda s: s.n / 2, "whole numbers only"),
    "a third": (lambda s: s.n // 3, "a power of two, which 3 is not"),
    "too many bits": (lambda s: s.n << 32, "0 to 31 bits"),
    "too large": (lambda s: s.n * (1 << 30), "does not fit a register"),
    "a loop that never turns": (lambda s: s.k.loop(s.n - 9), "never that many"),
    "another format": (lambda s: s.k.register(s.x[0:1, 0:1], 3), "int32 or uint32; x is bf16"),
    "several elements": (lambda s: s.k.register(s.k.hbm("m", (2,), "int32", np.zeros(2, np.uint32)), 3), "one element"),
    "a negative maximum": (lambda s: s.k.register(s.number, -1), "is at most 2147483647, not -1"),
    "no whole maximum": (lambda s: s.k.register(s.number, 1.5), "maximum must be a whole number"),  # type: ignore[arg-type]
    "a ring": (_in_block(lambda s: s.k.dma(s.tile[:, :], s.x, ring=1)), "goes to its queue's own ring, so ring 1"),
    "another queue": (_in_block(lambda s: s.k.dma(s.tile[:, :], s.x, queue=Queue.VECTOR)), "queue scalar or sync"),
    "a signal": (
        _in_block(lambda s: s.k.dma(s.tile[:, :], s.x, signal=s.k.semaphore("done"))),
        "signals its own queue's ring",
    ),
    "a wait": (_in_block(lambda s: s.k.vector.wait(s.k.semaphore("go"), 1)), "waits for a semaphore in every run"),
    "a register in a loop": (_in_block(lambda s: s.k.register(s.number, 3)), "read before the loops that it is for"),
    "what has been read changes": (_changed, "tensor inner of core .* has been read as a register"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_one_sentence(name: str) -> None:
    do, sentence = WRONG[name]
    with pytest.raises(KernelError, match=sentence) as caught:
        do(Setting())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "live"), [([0, 1, 2, 3], 4), ([5, 5, 0, 2], 3), ([3, 1, 4, 1], 0), ([2, 0, 5, 3], 1), ([5, 4, 3, 0], 4)]
)
def test_pages_are_where_a_table_says(table: list[int], live: int) -> None:
    program, (y, z) = paged(table, live), where_pages_go(table, live)
    image = build_image(program)
    for order in (None, 1, 2, 3):
        machine = GoldenMachine(CFG, order)
        machine.load(image)
        found = machine.run()
        assert not found.faults
        assert np.array_equal(found.outputs["y"], y) and np.array_equal(found.outputs["z"], z)
    plain = executed_program(program, dict(enumerate([*table, live])))
    places = [
        i.descriptor.source.offset for i in plain.queues[Queue.SYNC] if i.descriptor and i.descriptor.source.tensor
    ]
    assert places == [page * P * 16 * 2 for page in table[:live]]
    shown_is_executed(program, dict(enumerate([*table, live])))


def test_semaphores_of_direct_copies_are_left_free() -> None:
    s = Setting()
    s.k.dma(s.tile[:, :], s.x, direct=True)
    free = CFG.issue.semaphores - len(Queue) - CFG.dma.rings - 2
    for n in range(free):
        s.k.semaphore(f"s{n}")
    with pytest.raises(KernelError, match="would be number"):
        s.k.semaphore("one more")
    full = Setting()
    for n in range(free + 2):
        full.k.semaphore(f"s{n}")
    with pytest.raises(KernelError, match="direct copies need a semaphore for each of 2 queues"):
        full.k.dma(full.tile[:, :], full.x, direct=True)


def test_direct_copies_count_as_others_do() -> None:
    def kernel(direct: bool) -> Program:
        s = Setting()
        s.k.dma(s.tile[:, :], s.x, direct=direct)
        s.k.dma(s.y, s.tile[:, :], direct=direct, queue=Queue.SCALAR if direct else None)
        return s.k.program()

    plain, own = kernel(False), kernel(True)
    assert (own.hbm_read_bytes, own.hbm_written_bytes) == (plain.hbm_read_bytes, plain.hbm_written_bytes)
    assert not own.rings and len(list(own.copies())) == 2
    assert [i.opcode for i in own.queues[Queue.SCALAR]] == [Opcode.DMA_COPY]
    outputs = []
    for program in (plain, own):
        machine = GoldenMachine(CFG, 1)
        machine.load(build_image(program))
        outputs.append(machine.run().outputs["y"])
    assert np.array_equal(*outputs)


@pytest.mark.parametrize("live", [5, -1])
def test_the_golden_machine_says_which_number_is_wrong(live: int) -> None:
    def kernel(k: Kernel, x: Any, live: Any) -> None:
        tile = k.sbuf("tile", partitions=P, columns=8, dtype="fp32")
        k.vector.memset(tile[:, :], 0.0)
        with k.loop(k.register(live[0:1], 4)) as i:
            k.dma(tile[:, :], x[i, :, :])
        k.dma(k.hbm("y", (P, 8), "fp32"), tile[:, :])

    given = {"x": np.ones((4, P, 8), np.float32), "live": np.array([live], np.int32)}
    with pytest.raises(plexus.RunError, match=rf"live is {live}, and the kernel has room for 0 to 4 \(k.register at "):
        plexus.run(kernel, given, config="tiny", device="golden")
