"""Programs of several cores on golden machines: right in any order that their signals allow."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from firmware.cores.ensemble import Ensemble
from firmware.cores.forward import forward
from firmware.cores.ping_pong import ping_pong
from firmware.cores.projected_attention import projected_attention
from firmware.cores.remote import remote
from firmware.cores.split_attention import split_attention
from firmware.image import build_image, build_images
from firmware.kernels.attention import attention
from firmware.kernels.attention_blocks import Sight
from firmware.kernels.attention_reference import attention_reference
from firmware.numbers import decode, encode
from firmware.unordered import unordered
from firmware.views import KernelError
from rtl.contract.config import load, named
from rtl.contract.isa import Queue
from rtl.contract.memmap import core_id
from verif.golden.cores import GoldenCores
from verif.golden.machine import DeadlockError, GoldenMachine
from verif.golden.results import RunResult

TINY = named("tiny")


def row(cores: int, tiles: int, buffers: int) -> Ensemble:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((tiles, TINY.partitions, 20)).astype(np.float32)
    return forward(TINY, x, rng.standard_normal(cores).astype(np.float32), buffers=buffers)


def finished(ensemble: Ensemble, seed: int | None) -> dict[int, RunResult]:
    images = build_images(ensemble.programs)
    machines = GoldenCores(ensemble.programs[0].config, list(images), seed)
    machines.load(images)
    results = machines.run()
    assert not any(result.faults for result in results.values())
    return results


def right(ensemble: Ensemble, seed: int | None) -> bool:
    results = finished(ensemble, seed)
    return all(np.array_equal(results[core].outputs[name], bits) for (core, name), bits in ensemble.truth.items())


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize(("cores", "tiles", "buffers"), [(1, 5, 2), (2, 7, 1), (3, 9, 2), (4, 8, 5)])
def test_forward_is_right_in_any_order(cores: int, tiles: int, buffers: int, seed: int | None) -> None:
    ensemble = row(cores, tiles, buffers)
    assert not unordered(ensemble.programs)
    assert right(ensemble, seed)
    assert len(ensemble.marks["added"]) == tiles


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_ping_pong_is_right_in_any_order(seed: int | None) -> None:
    ensemble = ping_pong(TINY, np.arange(7, dtype=np.uint32), 5)
    assert not unordered(ensemble.programs)
    assert right(ensemble, seed)
    assert len(ensemble.marks["back"]) == 5


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("add", [None, "fp32", "bf16", "int32"])
@pytest.mark.parametrize("spaces", [("sbuf", "sbuf"), ("hbm", "sbuf"), ("sbuf", "hbm"), ("hbm", "hbm")])
@pytest.mark.parametrize("direction", ["write", "read", "both"])
def test_remote_is_right_in_any_order(
    direction: str, spaces: tuple[str, str], add: str | None, seed: int | None
) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 32, (3, TINY.partitions, 24), dtype=np.uint32)
    if add in ("fp32", "bf16"):
        x = encode(rng.standard_normal(x.shape, np.float32), add)
    if add and (direction == "read" or spaces[1] == "hbm" or (direction == "both" and spaces[0] == "hbm")):
        with pytest.raises(KernelError, match=f"add={add} goes with direction=write or both, to the SBUF of who gets"):
            remote(TINY, x, direction=direction, spaces=spaces, add=add)
        return
    ensemble = remote(TINY, x, direction=direction, spaces=spaces, add=add)
    assert not unordered(ensemble.programs)
    assert right(ensemble, seed)
    assert len(ensemble.truth) == 1 + (direction == "both")
    if add:
        for bits in ensemble.truth.values():
            flipped = x[:, :, ::-1] if bits is not next(iter(ensemble.truth.values())) else x
            total = decode(flipped, add) + decode(flipped[::-1], add)
            assert np.array_equal(bits, encode(total, add) if add != "int32" else flipped + flipped[::-1])


def random_heads(heads: int, shared: int, queries: int, keys: int, dims: int, values: int) -> list[np.ndarray]:
    rng = np.random.default_rng(keys)
    shapes = (heads, queries, dims), (shared, keys, dims), (shared, keys, values)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


# heads, heads of keys, queries, keys, dimensions, values
ATTENTIONS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 2, 20, 20, 8, 8), {"cores": 2}),
    ((2, 2, 20, 20, 8, 8), {"cores": 1}),
    ((4, 2, 20, 33, 8, 12), {"cores": 2, "causal": True}),
    ((4, 4, 20, 20, 8, 8), {"cores": 4, "buffers": 1}),
    ((4, 1, 17, 17, 8, 8), {"cores": 2, "causal": True, "buffers": 3}),  # both cores have the one head of keys
    ((4, 2, 1, 40, 8, 8), {"cores": 2, "causal": True}),
    ((2, 2, 9, 70, 20, 32), {"cores": 2}),  # three blocks of keys
]


@pytest.mark.parametrize(("sizes", "how"), ATTENTIONS)
def test_split_attention_has_the_bits_of_a_core_alone(sizes: tuple[int, ...], how: dict[str, Any]) -> None:
    q, k, v = random_heads(*sizes)
    causal = how.get("causal", False)
    split = split_attention(TINY, q, k, v, **how)
    assert not unordered(split.programs)
    y = finished(split, None)[0].outputs["y"]
    alone = attention(TINY, q, k, v, causal=causal)
    machine = GoldenMachine(TINY)
    machine.load(build_image(alone))
    assert np.array_equal(y, machine.run().outputs["context"])
    assert sum(program.macs for program in split.programs) == alone.macs
    rounded = [decode(encode(x, "bf16"), "bf16") for x in (q, k, v)]
    exact = attention_reference(*rounded, Sight(q.shape[1], k.shape[1], causal))
    error = np.abs(decode(y, "fp32").reshape(exact.shape) - exact).max()
    assert error < 2**-8 * np.abs(exact).max()
    assert split.metrics is not None and split.metrics({(0, "y"): y})["max_abs_error"] == pytest.approx(error)
    tiles = -(-sizes[2] // TINY.tensor.rows) * sizes[0] if sizes[2] > 1 else sizes[1]
    assert len(split.marks["own"]) == tiles // how["cores"]
    assert len(split.marks["arrived"]) == tiles - tiles // how["cores"]


@pytest.mark.parametrize("buffers", [1, 2, 4])
@pytest.mark.parametrize("cores", [2, 4])
def test_split_attention_is_right_in_any_order(cores: int, buffers: int) -> None:
    """Four tiles a head: places are used again."""
    ensemble = split_attention(TINY, *random_heads(4, 4, 26, 16, 8, 8), cores=cores, buffers=buffers)
    first, *others = (finished(ensemble, seed)[0].outputs["y"] for seed in (None, 1, 2, 3))
    assert all(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize(
    ("sizes", "causal", "cores"),
    [((4, 2, 17, 17, 8, 16), True, (1, 2, 4)), ((2, 2, 20, 33, 12, 8), False, (1, 2))],
)
def test_projected_attention_has_the_same_bits_on_any_number_of_cores(
    sizes: tuple[int, ...], causal: bool, cores: tuple[int, ...]
) -> None:
    q, k, v = random_heads(*sizes)
    weights = np.random.default_rng(7).standard_normal((sizes[0] * sizes[5], 70), np.float32)
    found: list[np.ndarray] = []
    for count in cores:
        ensemble = projected_attention(TINY, q, k, v, weights, cores=count, causal=causal)
        assert not unordered(ensemble.programs)
        found += [finished(ensemble, seed)[0].outputs["y"] for seed in ((None, 1, 2) if count == 2 else (None,))]
        assert len(ensemble.marks["arrived"]) == count - 1
    assert all(np.array_equal(found[0], other) for other in found)
    q, k, v, weights = (decode(encode(x, "bf16"), "bf16").astype(np.float64) for x in (q, k, v, weights))
    context = attention_reference(q, k, v, Sight(q.shape[1], k.shape[1], causal))
    exact = context.swapaxes(0, 1).reshape(q.shape[1], -1) @ weights
    assert np.abs(decode(found[0], "fp32") - exact).max() < 2**-7 * np.abs(exact).max()


def test_a_projection_waits_for_operands_of_others() -> None:
    weights = np.random.default_rng(7).standard_normal((16, 8), np.float32)
    ensemble = projected_attention(TINY, *random_heads(2, 2, 20, 16, 8, 8), weights)
    first, second = ensemble.programs
    silent = replace(second, rings=[], queues={queue: [] for queue in Queue})
    with pytest.raises(DeadlockError, match=r"^core \(0, 0, 0, 0\): queue tensor waits at .* \(now 0\)"):
        finished(replace(ensemble, programs=(first, silent)), None)


@pytest.mark.parametrize(
    ("sizes", "rows", "says"),
    [
        ((4, 2, 1, 8, 8, 8), 32, "heads that share keys have at least 2 queries, not 1"),
        ((2, 2, 8, 8, 8, 12), 24, "values have a multiple of 8 dimensions, not 12"),
        ((2, 2, 8, 8, 8, 8), 15, "an output projection of 2 heads of 8 has not 15 rows"),
        ((3, 3, 8, 8, 8, 8), 24, "3 heads are no multiple of 2 cores"),
    ],
)
def test_projections_that_cannot_be_are_refused(sizes: tuple[int, ...], rows: int, says: str) -> None:
    with pytest.raises(KernelError, match=says):
        projected_attention(TINY, *random_heads(*sizes), np.zeros((rows, 8), np.float32))


def test_who_does_not_wait_for_places_is_noticed() -> None:
    """The signals are needed: without what core 0 tells, tiles overwrite each other in some order."""
    ensemble = split_attention(TINY, *random_heads(2, 2, 40, 16, 8, 8), buffers=1)
    want = finished(ensemble, None)[0].outputs["y"]
    own = len(Queue) + TINY.dma.rings
    queue = ensemble.programs[1].queues[Queue.GPSIMD]
    queue[:] = [replace(i, waits=tuple(w for w in i.waits if w.semaphore < own)) for i in queue]
    assert any(not np.array_equal(finished(ensemble, seed)[0].outputs["y"], want) for seed in range(1, 9))


@pytest.mark.parametrize(
    ("sizes", "how", "says"),
    [
        ((3, 3, 8, 8, 8, 8), {}, "each core has as many heads: 3 heads are no multiple of 2 cores"),
        ((2, 2, 8, 8, 8, 8), {"cores": 0}, "each core has as many heads: 2 heads are no multiple of 0 cores"),
        ((6, 3, 8, 8, 8, 8), {}, "the 3 heads of a core are whole groups .*: 3 and 2, of a group, are no multiples"),
        ((4, 1, 1, 8, 8, 8), {}, "heads of a single query .* stay in one core: 4 heads do, and a core has 2"),
        ((2, 2, 8, 8, 8, 8), {"buffers": 0}, "a stream of tiles needs a buffer at least, not 0 buffers"),
        ((2, 2, 9, 8, 8, 8), {"causal": True}, "at most 8 queries, not 9"),
        ((4, 3, 8, 8, 8, 8), {}, "4 heads are no multiple of the 3 heads of keys"),
    ],
)
def test_attention_that_cannot_be_split_is_refused(sizes: tuple[int, ...], how: dict[str, Any], says: str) -> None:
    with pytest.raises(KernelError, match=says):
        split_attention(TINY, *random_heads(*sizes), **how)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(KernelError, match="needs a core, a tile and a buffer at least, not 2 cores, 0 tiles"):
        row(2, 0, 1)
    with pytest.raises(KernelError, match="needs a round and a word at least, not 0 and 1"):
        ping_pong(TINY, np.zeros(1, np.uint32), 0)
    with pytest.raises(KernelError, match="direction is one of write, read, both, not up"):
        remote(TINY, np.zeros((1, 8, 4), np.uint32), direction="up", add=None)
    with pytest.raises(KernelError, match="near and far are sbuf or hbm, not psum"):
        remote(TINY, np.zeros((1, 8, 4), np.uint32), spaces=("sbuf", "psum"), add=None)


def test_places_are_those_of_the_map() -> None:
    """Core n of a row has endpoint number n, wherever that is."""
    cfg = load("tiny", ["fabric.endpoint_bits=0:1:0:1"])
    x = np.ones((2, cfg.partitions, 4), np.float32)
    ensemble = forward(cfg, x, np.ones(4, np.float32))
    assert [program.core for program in ensemble.programs] == [core_id(0, n // 2, 0, n % 2) for n in range(4)]
    assert right(ensemble, 1)
    with pytest.raises(KernelError, match="an endpoint number must be from 0 to 3 .*not 4"):
        forward(cfg, x, np.ones(5, np.float32))
