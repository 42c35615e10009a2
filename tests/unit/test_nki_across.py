"""NKI calls that cross partitions or sum copies, on the golden machine."""

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plexus

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    """Runs the body of a kernel f(x, ...); `out` is an array of the shape of x, or of `shape`."""

    def run(body: str, *arrays: Any, shape: tuple[int, ...] = (), config: str = "tiny") -> np.ndarray:
        path = tmp_path / "kernels.py"
        sizes = shape or arrays[0].shape
        made = f"out = nl.ndarray({sizes}, x.dtype, buffer=nl.shared_hbm)\n"
        text = textwrap.indent(made + textwrap.dedent(body).strip() + "\nreturn out\n", "    ")
        path.write_text(f"{HEAD}\n\n@nki.jit\ndef f({', '.join('xyz'[: len(arrays)])}):\n{text}")
        return plexus.nki.run(f"{path}:f", *arrays, config=config, device="golden").output

    return run


@pytest.mark.parametrize("mask", [[7, 6, 5, 4, 3, 2, 1, 0], [0, 0, 0, 0, 4, 5, 6, 7], [255, 0, 255, 255, 1, 2, 255, 7]])
@pytest.mark.parametrize("first", [0, 1])
def test_a_shuffle_of_whole_blocks_and_of_others(kernel: Any, mask: list[int], first: int) -> None:
    """From partition 1 on there are seven: copies, of a source that lies a partition lower."""
    x = normal(8, 12)
    rows = 8 - first
    taken = [m if m == 255 else min(m, rows - 1) for m in mask]
    found = kernel(
        f"""
        tile, to = nl.ndarray((8, 12), x.dtype), nl.ndarray((8, 12), x.dtype)
        nisa.dma_copy(dst=tile, src=x)
        nisa.memset(to, 7.0)
        nisa.nc_stream_shuffle(dst=to[{first}:8], src=tile[0:{rows}], shuffle_mask={taken})
        nisa.dma_copy(dst=out, src=to)
        """,
        x,
    )
    wanted = np.full_like(x, 7)
    for j in range(rows):
        if taken[j] != 255:
            wanted[first + j] = x[taken[j]]
    assert np.array_equal(found, wanted)


def test_a_shuffle_broadcasts_one_partition(kernel: Any) -> None:
    x = normal(8, 12)
    found = kernel(
        """
        tile = nl.ndarray((8, 12), x.dtype)
        nisa.dma_copy(dst=tile, src=x)
        nisa.nc_stream_shuffle(dst=tile, src=tile[0:1], shuffle_mask=[0] * 8)
        nisa.dma_copy(dst=out, src=tile)
        """,
        x,
    )
    assert np.array_equal(found, np.broadcast_to(x[0], x.shape))


def test_dma_compute_scales_and_adds(kernel: Any) -> None:
    x, y = normal(20, 12), normal(20, 12, seed=1)
    found = kernel("nisa.dma_compute(dst=out, srcs=[x, y], scales=[1.0, 0.5], reduce_op=nl.add)", x, y)
    assert np.array_equal(found, x + y * np.float32(0.5))


def test_a_sum_over_partitions(kernel: Any) -> None:
    x = normal(8, 300)
    found = kernel(
        """
        tile, sums = nl.ndarray((8, 300), x.dtype), nl.ndarray((1, 300), x.dtype)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_partition_reduce(sums, nl.add, tile)
        nisa.dma_copy(dst=out, src=sums)
        """,
        x,
        shape=(1, 300),
    )
    assert np.allclose(found[0], x.astype(np.float64).sum(0), rtol=0, atol=1e-5)


def test_an_identity_and_the_generation(kernel: Any) -> None:
    found = kernel(
        """
        assert nisa.get_nc_version() == nisa.nc_version.gen4 > nisa.nc_version.gen3
        nisa.dma_copy(dst=out, src=nl.shared_identity_matrix(8, dtype=nl.float32))
        """,
        normal(8, 8),
    )
    assert np.array_equal(found, np.eye(8))


def test_positions_of_what_is_replaced(kernel: Any) -> None:
    x = normal(8, 16)
    found = kernel(
        """
        tile, top, rest = (nl.ndarray((8, n), x.dtype) for n in (16, 8, 16))
        at = nl.ndarray((8, 8), nl.uint32)
        nisa.dma_copy(dst=tile, src=x)
        nisa.max8(dst=top, src=tile)
        nisa.nc_match_replace8(dst=rest, data=tile, vals=top, imm=-9.0, dst_idx=at)
        nisa.tensor_copy(dst=rest[:, 0:8], src=at)
        nisa.dma_copy(dst=out, src=rest)
        """,
        x,
    )
    order = np.argsort(-x, axis=1)
    assert np.array_equal(found[:, :8], order[:, :8])
    replaced = np.where(np.argsort(order, axis=1) < 8, -9, x)
    assert np.array_equal(found[:, 8:], replaced[:, 8:])


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("nisa.nc_stream_shuffle(dst=nl.zeros((8, 4)), src=nl.zeros((8, 4)), shuffle_mask=[0])", "has 8 entries"),
        ("nisa.dma_compute(out, [x], scales=[1.0, 2.0])", "each with a scale"),
        ("nisa.tensor_partition_reduce(nl.zeros((1, 4)), nl.maximum, nl.zeros((8, 4)))", "does not maximum"),
    ],
)
def test_wrong_calls_get_a_sentence(kernel: Any, body: str, sentence: str) -> None:
    with pytest.raises(plexus.Error, match=sentence):
        kernel(body, normal(8, 4))
