"""Programs of several cores on golden machines: right in any order that their signals allow."""

import numpy as np
import pytest

from firmware.cores.ensemble import Ensemble
from firmware.cores.forward import forward
from firmware.cores.ping_pong import ping_pong
from firmware.image import build_images
from firmware.unordered import unordered
from firmware.views import KernelError
from rtl.contract.config import load, named
from rtl.contract.memmap import core_id
from verif.golden.cores import GoldenCores

TINY = named("tiny")


def row(cores: int, tiles: int, buffers: int) -> Ensemble:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((tiles, TINY.partitions, 20)).astype(np.float32)
    return forward(TINY, x, rng.standard_normal(cores).astype(np.float32), buffers=buffers)


def right(ensemble: Ensemble, seed: int | None) -> bool:
    images = build_images(ensemble.programs)
    machines = GoldenCores(ensemble.programs[0].config, list(images), seed)
    machines.load(images)
    results = machines.run()
    assert not any(result.faults for result in results.values())
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


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(KernelError, match="needs a core, a tile and a buffer at least, not 2 cores, 0 tiles"):
        row(2, 0, 1)
    with pytest.raises(KernelError, match="needs a round and a word at least, not 0 and 1"):
        ping_pong(TINY, np.zeros(1, np.uint32), 0)


def test_places_are_those_of_the_map() -> None:
    """Core n of a row has endpoint number n, wherever that is."""
    cfg = load("tiny", ["fabric.endpoint_bits=0:1:0:1"])
    x = np.ones((2, cfg.partitions, 4), np.float32)
    ensemble = forward(cfg, x, np.ones(4, np.float32))
    assert [program.core for program in ensemble.programs] == [core_id(0, n // 2, 0, n % 2) for n in range(4)]
    assert right(ensemble, 1)
    with pytest.raises(KernelError, match="an endpoint number must be from 0 to 3 .*not 4"):
        forward(cfg, x, np.ones(5, np.float32))
