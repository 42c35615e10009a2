"""Copies from and to other cores: what the language refuses and emits, and what golden machines make of it."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from firmware.image import ImageError, build_image, build_images
from firmware.kernel import Kernel, KernelError
from firmware.program import Program
from firmware.rings import FENCE
from firmware.unordered import unordered
from firmware.views import Tile
from rtl.contract.config import Config, load, named
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.gpsimd import FAULT
from rtl.contract.isa import Cause, Opcode, Queue
from rtl.contract.memmap import ADDRESS, Space, address, core_id
from verif.benches.core.exchange import exchange
from verif.golden.cores import GoldenCores
from verif.golden.machine import DeadlockError, GoldenMachine

TINY = named("tiny")
THERE, ELSEWHERE = (0, 0, 0, 1), (0, 2, 3, 4)
NAMED = 7  # the first semaphore behind those of queues and rings


def bits(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.uint32).reshape(shape)


def pair() -> tuple[Kernel, Kernel]:
    return Kernel(TINY, "near"), Kernel(TINY, "far", THERE)


def refuse(sentence: str, action: Callable[[Kernel, Kernel], object]) -> None:
    with pytest.raises(KernelError) as error:
        action(*pair())
    text = str(error.value)
    assert sentence in text and "\n" not in text


def test_errors():
    x = bits(8, 4)

    def tile(k: Kernel, name: str = "t"):
        return k.sbuf(name, partitions=8, columns=4, dtype="uint32")

    refuse(
        "kernel k is for core (0, 0, 16, 0), but address.chip = 16 does not fit in 4 bits (0 to 15)",
        lambda near, far: Kernel(TINY, "k", (0, 0, 16, 0)),
    )
    refuse(
        "a copy of core (0, 0, 0, 0) has an end there; y lies in core (0, 0, 0, 1) and t in core (0, 0, 0, 1)",
        lambda near, far: near.dma(far.hbm("y", (8, 4), "uint32")[:, :], tile(far)[:, :]),
    )
    refuse(
        "DMA reaches HBM and SBUF, not PSUM, where s lies",
        lambda near, far: near.dma(near.hbm("y", (8, 4), "fp32")[:, :], far.psum("s", partitions=8, columns=4)[:, :]),
    )
    refuse(
        "tensor x is an input, so a kernel must not write to it",
        lambda near, far: near.dma(far.hbm("x", (8, 4), "uint32", x)[:, :], tile(near)[:, :]),
    )
    refuse(
        "a copy signals in its own core (0, 0, 0, 0) or in that of its destination (0, 0, 0, 1); semaphore go is one "
        "of core (0, 2, 3, 4)",
        lambda near, far: near.dma(
            tile(far)[:, :], tile(near)[:, :], signal=Kernel(TINY, "k", ELSEWHERE).semaphore("go")
        ),
    )
    refuse(
        "a copy signals in its own core (0, 0, 0, 0) or in that of its destination (0, 0, 0, 0)",
        lambda near, far: near.dma(tile(near)[:, :], tile(far)[:, :], signal=far.semaphore("go")),
    )
    refuse(
        "queue sync of core (0, 0, 0, 0) cannot wait for semaphore go of core (0, 0, 0, 1)",
        lambda near, far: near.wait(Queue.SYNC, far.semaphore("go"), 1),
    )
    refuse(
        "the value to wait for must be from 1 to 2147483647, not 0",
        lambda near, far: near.vector.wait(near.semaphore("go"), 0),
    )
    refuse(
        "queue vector reaches the memories of core (0, 0, 0, 0), not tile t of core (0, 0, 0, 1); copies do",
        lambda near, far: near.vector.copy(tile(near, "u")[:, :], tile(far)[:, :]),
    )

    def two_classes(near: Kernel, far: Kernel) -> None:
        there = tile(far)
        near.dma(there[:, 0:2], tile(near)[:, 0:2], class_=1)
        near.dma(there[:, 2:4], tile(near, "u")[:, 2:4], class_=2)

    refuse("copies of t in core (0, 0, 0, 1) have class 1, so class 2 must not be used", two_classes)

    def too_many(near: Kernel, far: Kernel) -> None:
        for n in range(TINY.issue.semaphores):
            near.semaphore(f"s{n}")

    refuse("there are issue.semaphores = 256", too_many)
    refuse("the name 'fence' is empty or taken already", lambda near, far: near.hbm(FENCE, (1,), "uint8"))


@pytest.mark.parametrize(
    ("core", "rule"),
    [((0, 16, 0, 0), "server must be from 0 to 15"), ((1, 0, 0, 0), "rack must be from 0 to 0")],
)
def test_a_core_without_an_endpoint_number_has_no_copies_to_others(core: tuple[int, ...], rule: str):
    def tiles(cfg: Config) -> tuple[Kernel, Kernel, Tile, Tile]:
        near, far = Kernel(cfg, "near"), Kernel(cfg, "far", core)  # type: ignore[arg-type]
        mine, others = (k.sbuf("t", partitions=8, columns=4, dtype="uint32") for k in (near, far))
        return near, far, mine, others

    why = f"core {core} has no endpoint number: {rule} (fabric.endpoint_bits is 0:4:4:4), not {max(core)}"
    near, far, mine, others = tiles(TINY)
    for k, dst, src, other in ((near, others, mine, core), (near, mine, others, core), (far, mine, others, (0,) * 4)):
        with pytest.raises(KernelError, match=re.escape(f"a copy of t in core {other}: {why}")):
            k.dma(dst[:, :], src[:, :])
    far.dma(far.hbm("y", (8, 4), "uint32")[:, :], others[:, :])  # inside it may be as it likes
    near, _, mine, others = tiles(load("tiny", ["fabric.endpoint_bits=gen2"]))
    near.dma(others[:, :], mine[:, :])


def test_an_address_without_an_endpoint_number_is_no_route():
    """Programs of another map, on golden machines of this one and of their own."""
    cfg, place = load("tiny", ["fabric.endpoint_bits=gen2"]), (0, 16, 0, 0)
    near, far = Kernel(cfg, "near"), Kernel(cfg, "far", place)
    tiles = [k.sbuf("t", partitions=8, columns=4, dtype="uint32") for k in (near, far)]
    near.dma(tiles[1][:, :], tiles[0][:, :])
    far.dma(tiles[1][:, :], tiles[0][:, :])
    images = build_images([near.program(), far.program()])
    for machine, cause in ((cfg, None), (TINY, Cause.NO_ROUTE)):
        cores = GoldenCores(machine, list(images))
        cores.load(images)
        faults = {core: result.faults for core, result in cores.run().items()}
        assert {core: [fault.cause for fault in found] for core, found in faults.items()} == {
            core: [cause] if cause else [] for core in images
        }
        assert not cause or {fault.address >> 44 for found in faults.values() for fault in found} == set(images)


def test_images_need_each_other():
    near, far = pair()
    y = far.hbm("y", (8, 4), "uint32")
    near.dma(y[:, :], near.sbuf("t", partitions=8, columns=4, dtype="uint32")[:, :])
    with pytest.raises(ImageError, match=r"copies tensor y of core \(0, 0, 0, 1\), whose program is not among"):
        build_image(near.program())
    with pytest.raises(ImageError, match=r"program near is the second one of core \(0, 0, 0, 0\)"):
        build_images([near.program(), near.program()])
    other = Kernel(load("tiny", ["hbm.capacity_mib=32"]), "other", ELSEWHERE)
    with pytest.raises(ImageError, match="programs near and other are of two configurations"):
        build_images([near.program(), other.program()])


def test_words_name_the_core():
    near, far = pair()
    far.hbm("first", (100,), "uint8")
    y = far.hbm("y", (8, 4), "uint32")
    go = far.semaphore("go")
    near.dma(y[2:4, :], near.sbuf("t", partitions=2, columns=4, dtype="uint32")[:, :], signal=go, class_=3)
    program, other = near.program(), far.program()
    images = build_images([program, other])
    base, count = images[0].rings[1]
    word = DESCRIPTOR.unpack(int.from_bytes(images[0].memory()[base : base + 128].tobytes(), "little"))
    there = core_id(*THERE)
    assert count == 1 and word["source"] == address(Space.SBUF, 0)
    assert word["destination"] == address(Space.HBM, images[there].tensors["y"].offset + 32, core_id=there)
    assert word["signal_address"] == address(Space.SEMAPHORES, 4 * go.index, core_id=there)
    assert word["class_"] == 3
    assert program.hbm_written_bytes == 0


def test_a_copy_that_signals_elsewhere_is_counted_when_somebody_asks():
    near, far = pair()
    t = near.sbuf("t", partitions=8, columns=4, dtype="uint32")
    there = far.sbuf("there", partitions=8, columns=4, dtype="uint32")
    go = far.semaphore("go")
    for _ in range(2):
        near.dma(there[:, :], t[:, :], signal=go)
    ring = near.program().rings[1]
    # The second one writes what the first one wrote: a fence counts the first.
    assert [d.source.tensor for d in ring] == ["", FENCE, ""]
    assert [(d.signal, d.signal_core) for d in ring] == [(go.index, 1), (6, 0), (go.index, 1)]
    near.vector.memset(t[:, :], 1.0)
    program = near.program()
    assert [d.source.tensor for d in program.rings[1]] == ["", FENCE, "", FENCE]
    assert [(w.semaphore, w.value) for w in program.queues[Queue.VECTOR][-1].waits] == [(6, 2)]
    near.barrier(Queue.SYNC)
    assert len(program.rings[1]) == 4, "nothing is open that a fence would have to count"


def test_a_wait_stands_for_what_arrives():
    k = Kernel(TINY, "k")
    t = k.sbuf("t", partitions=8, columns=4, dtype="uint32")
    go = k.semaphore("go")
    k.wait(Queue.SYNC, go, 3, t[:, :])
    k.vector.copy(k.sbuf("u", partitions=8, columns=4, dtype="uint32")[:, :], t[:, :])
    program = k.program()
    (nop,) = program.queues[Queue.SYNC]
    assert nop.opcode == Opcode.NOP and [(w.semaphore, w.value) for w in nop.waits] == [(go.index, 3)]
    assert [(w.semaphore, w.value) for w in program.queues[Queue.VECTOR][0].waits] == [(Queue.SYNC, 1)]


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("seed", [None, *range(6)])
def test_golden_cores_exchange_tensors(seed: int | None, lost: bool):
    made = exchange(TINY, np.random.default_rng(3), lost=lost)
    cores = GoldenCores(TINY, (0, 1), seed)
    cores.load(build_images(made.programs))
    results = cores.run()
    assert not results[0].faults and not results[1].faults
    for name in ("back", "fetched"):
        assert np.array_equal(results[0].outputs[name], made.total.view(np.uint32))
    for name in ("sum", "added"):
        assert np.array_equal(results[1].outputs[name], made.total.view(np.uint32))


def _two_senders(*, ordered: bool, add: str = "fp32", apart: int = 0) -> list[Program]:
    """Two cores add to one tile of a third; `ordered`: the second waits until the first is through. `apart`: columns
    between what they add to."""
    p, n = TINY.partitions, 16
    rng = np.random.default_rng(7)
    values = [(rng.standard_normal((p, n)) * 10.0**e).astype(np.float32).view(np.uint32) for e in (0, 3, 6)]
    dtype = "fp32" if add == "fp32" else "uint32"
    first, second, third = (Kernel(TINY, f"core{c}", (0, 0, 0, c)) for c in range(3))
    tile = third.sbuf("tile", partitions=p, columns=n + apart, dtype=dtype)
    ready, over = (third.semaphore(name) for name in ("ready", "over"))
    goes = [k.semaphore("goes") for k in (first, second)]
    base, out = third.hbm("base", (p, n), dtype, values[0]), third.hbm("out", (p, n + apart), dtype)
    spare = third.sbuf("spare", partitions=1, columns=n, dtype=dtype)
    here = third.dma(tile[:, :n], base[:, :])
    if apart:
        here = third.dma(tile[:, n:], base[:, :apart])
    for k, go in zip((first, second), goes, strict=True):
        told = k.hbm("told", (1, n), dtype)
        third.dma(told[:, :], spare[:, :], after=[here], signal=go)
        k.wait(Queue.GPSIMD, go, 1, told[:, :])
    for k, data in zip((first, second), values[1:], strict=True):
        x = k.hbm("x", (p, n), dtype, data)
        to = tile[:, apart:] if k is second else tile[:, :n]
        if ordered and k is second:
            passed = second.semaphore("passed")
            note = second.hbm("note", (1, n + apart), dtype)
            third.wait(Queue.GPSIMD, ready, 1, tile[:, :])
            third.dma(note[:, :], tile[0:1, :], signal=passed)
            second.wait(Queue.GPSIMD, passed, 1, note[:, :])
        k.dma(to, x[:, :], add=add, signal=over if k is second or not ordered else ready)
    third.wait(Queue.GPSIMD, over, 1 if ordered else 2, tile[:, :])
    third.dma(out[:, :], tile[:, :])
    return [k.program() for k in (first, second, third)]


def _sums(programs: list[Program], seed: int) -> bytes:
    cores = GoldenCores(TINY, range(3), seed)
    cores.load(build_images(programs))
    results = cores.run()
    assert not any(result.faults for result in results.values())
    return results[2].outputs["out"].tobytes()


def _overtaken(seed: int, *, waits: bool) -> bytes:
    """What core 1 reads of a tile that core 0 fills, told by the signal of a sum behind the copy in the same ring."""
    p, n = TINY.partitions, 16
    near, far = pair()
    x = near.hbm("x", (p, n), "fp32", bits(p, n))
    tile = near.sbuf("tile", partitions=p, columns=n, dtype="fp32")
    there = far.sbuf("there", partitions=p, columns=n, dtype="fp32")
    out = far.hbm("out", (p, n), "fp32")
    told = far.semaphore("told")
    filled = near.dma(tile[:, :], x[:, :], ring=0, queue=Queue.SYNC)
    after = [filled] if waits else []
    near.dma(there[:, :], x[:, :], ring=0, queue=Queue.SYNC, add="fp32", after=after, signal=told)
    far.wait(Queue.SYNC, told, 1, there[:, :])
    far.dma(out[:, :], tile[:, :], ring=0, queue=Queue.SYNC)
    cores = GoldenCores(TINY, range(2), seed)
    cores.load(build_images((near.program(), far.program())))
    return cores.run()[1].outputs["out"].tobytes()


def test_a_sum_in_another_core_may_overtake_a_copy_in_this_one():
    assert len({_overtaken(seed, waits=False) for seed in range(300)}) == 2
    assert len({_overtaken(seed, waits=True) for seed in range(300)}) == 1


def test_sums_of_two_senders_depend_on_their_order_unless_signals_make_one():
    free, ordered = (_two_senders(ordered=ordered) for ordered in (False, True))
    assert len({_sums(free, seed) for seed in range(16)}) == 2
    assert len({_sums(ordered, seed) for seed in range(16)}) == 1
    (one,) = unordered(free)
    assert str(one).startswith("the sum of core (0, 0, 0, 0) (tests/firmware/"), one
    assert "to SBUF of core (0, 0, 0, 2) come in any order; one of them must wait" in str(one), one
    assert not unordered(ordered)


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
def test_the_signal_of_a_copy_inside_may_be_in_any_core(seed: int | None):
    """A tile that core 0 fills from its HBM is read by core 1, which is told by core 0's copy itself; without an update
    the address of the signal means nothing."""
    near, far = pair()
    x = near.hbm("x", (8, 40), "uint32", bits(8, 40))
    tile, there = (k.sbuf("t", partitions=8, columns=40, dtype="uint32") for k in (near, far))
    told = far.semaphore("told")
    near.dma(tile[:, :], x[:, :], signal=told)
    far.wait(Queue.SYNC, told, 1)
    far.dma(there[:, :], tile[:, :], ring=0, queue=Queue.SYNC)
    far.dma(far.hbm("y", (8, 40), "uint32")[:, :], there[:, :])
    programs = [near.program(), far.program()]
    assert not unordered(programs)
    cores = GoldenCores(TINY, range(2), seed)
    cores.load(build_images(programs))
    results = cores.run()
    assert not any(result.faults for result in results.values())
    assert np.array_equal(results[1].outputs["y"], bits(8, 40))
    assert results[1].semaphores[told.index] == 1 and results[0].semaphores[told.index] == 0


def test_a_signal_without_an_endpoint_number_is_refused():
    near, beyond = Kernel(TINY, "near"), Kernel(TINY, "beyond", (0, 16, 0, 0))
    tile, y = near.sbuf("t", partitions=8, columns=4, dtype="uint32"), near.hbm("y", (8, 4), "uint32")
    with pytest.raises(
        KernelError, match=r"a copy that signals go in core \(0, 16, 0, 0\): .* from 0 to 15 .*, not 16"
    ):
        near.dma(y[:, :], tile[:, :], signal=beyond.semaphore("go"))


def test_who_needs_no_order():
    whole = _two_senders(ordered=False, add="int32")
    assert not unordered(whole) and len({_sums(whole, seed) for seed in range(16)}) == 1
    assert not unordered(_two_senders(ordered=False, apart=16))
    assert len(unordered(_two_senders(ordered=False, apart=15))) == 1
    for lost in (False, True):
        assert not unordered(exchange(TINY, np.random.default_rng(3), lost=lost).programs)


def _any_senders(rng: np.random.Generator) -> list[Program]:
    """Two cores add to a row of a third, which lets them go on, or not, as they go along; nobody waits for ever."""
    n, owner, share = 16, 2, rng.choice([0.5, 0.9, 1.0])
    kernels = [Kernel(TINY, f"core{c}", (0, 0, 0, c)) for c in range(3)]
    third = kernels[owner]
    tile, spare = (third.sbuf(name, partitions=1, columns=n, dtype="fp32") for name in ("tile", "spare"))
    out = third.hbm("out", (1, n), "fp32")
    told = [third.semaphore(f"told{c}") for c in range(2)]
    goes = [k.semaphore("goes") for k in kernels[:2]]
    values = rng.choice([1.0, 1e8, -1e8, 3e-3], (4, n)).astype(np.float32).view(np.uint32)
    here = third.dma(tile[:, :], third.hbm("base", (1, n), "fp32", values[:1])[:, :])
    for c in range(2):
        third.dma(kernels[c].hbm("first", (1, n), "fp32")[:, :], spare[:, :], after=[here], signal=goes[c])
    sums, let = [0, 0], [1, 1]
    for number, c in enumerate(rng.permutation([0, 0, 1, 1])):
        for other in range(2):
            if rng.random() < share and sums[other]:
                third.wait(
                    Queue.GPSIMD,
                    told[other],
                    int(rng.choice([sums[other], rng.integers(1, sums[other] + 1)])),
                    tile[:, :],
                )
        if rng.random() < share:
            note = kernels[c].hbm(f"note{number}", (1, n), "fp32")
            third.dma(note[:, :], spare[:, :], queue=Queue.GPSIMD, ring=1, signal=goes[c])
            let[c] += 1
        k = kernels[c]
        if rng.random() < share or not sums[c]:
            k.wait(Queue.GPSIMD, goes[c], let[c])
        x = k.hbm(f"x{number}", (1, n), "fp32", values[number : number + 1])
        k.dma(tile[:, :], x[:, :], add="fp32", signal=told[c])
        sums[c] += 1
    for c in range(2):
        third.wait(Queue.GPSIMD, told[c], sums[c], tile[:, :])
    third.dma(out[:, :], tile[:, :])
    return [k.program() for k in kernels]


def test_that_a_sum_has_left_does_not_say_that_it_is_there():
    """The first sender lets the second go on when its sum has left for the third core."""
    n = 16
    first, second, third = kernels = [Kernel(TINY, f"core{c}", (0, 0, 0, c)) for c in range(3)]
    tile = third.sbuf("tile", partitions=1, columns=n, dtype="fp32")
    out, note = third.hbm("out", (1, n), "fp32"), second.hbm("note", (1, n), "fp32")
    told, goes = third.semaphore("told"), second.semaphore("goes")
    x, y = (k.hbm("x", (1, n), "fp32", bits(1, n) + 0x3F800000) for k in (first, second))
    left = first.dma(tile[:, :], x[:, :], add="fp32")
    first.dma(note[:, :], x[:, :], after=[left], signal=goes)
    second.wait(Queue.GPSIMD, goes, 1)
    second.dma(tile[:, :], y[:, :], signal=told)
    third.wait(Queue.GPSIMD, told, 1, tile[:, :])
    third.dma(out[:, :], tile[:, :])
    assert len(unordered([k.program() for k in kernels])) == 1


def test_what_is_in_order_never_differs():
    """And of what is not, much does."""
    found = {True: 0, False: 0}
    for seed in range(60):
        programs = _any_senders(np.random.default_rng(seed))
        free = bool(unordered(programs))
        results = {_sums(programs, order) for order in range(8)}
        assert free or len(results) == 1, f"seed {seed}"
        found[free] += len(results) > 1 if free else 1
    assert min(found.values()) >= 5, found


@pytest.mark.parametrize("core", [1, 2])
def test_each_wait_on_the_way_makes_the_order(core: int):
    """From the first sender through the third core to the second sender."""
    programs = _two_senders(ordered=True)
    for items in programs[core].queues.values():
        items[:] = [replace(i, waits=()) for i in items]
    assert unordered(programs)


@pytest.mark.parametrize("core", [0, 1])
def test_without_the_waits_for_the_other_core_some_order_differs(core: int):
    made = exchange(TINY, np.random.default_rng(3))
    for items in made.programs[core].queues.values():
        items[:] = [replace(i, waits=tuple(w for w in i.waits if w.semaphore < NAMED)) for i in items]
    differs = False
    for seed in range(20):
        cores = GoldenCores(TINY, (0, 1), seed)
        cores.load(build_images(made.programs))
        results = cores.run()
        total = made.total.view(np.uint32)
        differs |= any(not np.array_equal(results[0].outputs[name], total) for name in ("back", "fetched"))
    assert differs


def test_one_machine_alone_has_no_route():
    made = exchange(TINY, np.random.default_rng(3))
    image = build_images(made.programs)[0]
    machine = GoldenMachine(TINY)
    machine.load(image)
    faults = {fault.queue: fault for fault in machine.run().faults}
    fault, pushed = faults.pop("ring 0"), faults.pop("gpsimd")
    assert not faults and (fault.sequence, fault.cause, fault.address >> 44) == (3, Cause.NO_ROUTE, 1)
    record = FAULT.unpack(ADDRESS.unpack(pushed.address)["offset"])
    assert (pushed.cause, record["cause"], record["core"]) == (Cause.GP_DMA, Cause.NO_ROUTE, 0)


def test_what_lies_in_no_core_is_refused():
    near, far = pair()
    t = near.sbuf("t", partitions=8, columns=4, dtype="uint32")
    nowhere = Kernel(TINY, "nowhere", ELSEWHERE).sbuf("n", partitions=8, columns=4, dtype="uint32")
    near.dma(nowhere[:, :], t[:, :])
    near.dma(t[:, :], nowhere[:, :])
    cores = GoldenCores(TINY, (0, 1))
    cores.load(build_images([near.program(), far.program()]))
    result = cores.run()[0]
    (fault,) = result.faults
    assert (fault.queue, fault.cause) == ("ring 0", Cause.BUS_ERROR)
    assert fault.address == address(Space.SBUF, 0, core_id=core_id(*ELSEWHERE))
    assert result.semaphores[6] == 1, "a write that nobody takes has left all the same"


def test_a_wait_that_nobody_ends_is_a_deadlock_with_the_cores_name():
    near, far = pair()
    far.wait(Queue.SYNC, far.semaphore("go"), 1)
    cores = GoldenCores(TINY, (0, 1))
    cores.load(build_images([near.program(), far.program()]))
    with pytest.raises(DeadlockError, match=r"core \(0, 0, 0, 1\): queue sync waits at instruction 0 for semaphore 7"):
        cores.run()


@pytest.mark.parametrize("direct", [False, True])
def test_direct_copies_of_two_cores_are_found_as_others_are(direct: bool) -> None:
    near, far = pair()
    y = far.hbm("y", (8, 4), "uint32")
    for k in (near, far):
        k.dma(y[:, :], k.sbuf("t", partitions=8, columns=4, dtype="uint32")[:, :], direct=direct)
    (found,) = unordered([near.program(), far.program()])
    assert found.cores == (near.core, far.core) and "y" in str(found)
