"""How far attention is from the truth: float64 of the BF16 operands, computed here from the definition alone."""

import ml_dtypes
import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernels.attention import attention
from firmware.numbers import decode
from firmware.program import Program
from rtl.contract.config import load, named
from rtl.contract.isa import Queue
from rtl.contract.memmap import Space
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
TOKENS = 48  # several blocks of keys at `tiny`


def truth(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """Attention of operands rounded to BF16, [heads, tokens, dims], a query at a time."""
    q, k, v = (x.astype(ml_dtypes.bfloat16).astype(np.float64) for x in (q, k, v))
    found = np.zeros(q.shape)
    for head, token in np.ndindex(q.shape[:2]):
        seen = token + 1 if causal else q.shape[1]
        scores = k[head, :seen] @ q[head, token] / np.sqrt(q.shape[2])
        weights = np.exp(scores - scores.max())
        found[head, token] = weights @ v[head, :seen] / weights.sum()
    return found


def random_heads(dims: int, spread: float) -> list[np.ndarray]:
    """Q of standard deviation `spread`, K and V of 1."""
    rng = np.random.default_rng(dims)
    q, k, v = (rng.standard_normal((1, TOKENS, dims), np.float32) for _ in range(3))
    return [q * np.float32(spread), k, v]


def context(program: Program) -> np.ndarray:
    """What the golden machine makes of it."""
    machine = GoldenMachine(program.config)
    machine.load(build_image(program))
    result = machine.run()
    assert result.faults == []
    return decode(result.outputs["context"], "fp32")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("spread", [1, 16], ids=["plain", "strong"])
@pytest.mark.parametrize("dims", [16, 20, 32, 48, 64])
def test_scores_are_scaled_in_fp32(dims: int, spread: float, causal: bool) -> None:
    """What is left is the rounding of the exponentials to BF16, whatever the head and however strong the scores. Were Q
    divided by sqrt(dims) and rounded, strong scores would cost 5e-2 where dims is not a power of four."""
    operands = random_heads(dims, spread)
    error = context(attention(TINY, *operands, causal=causal)) - truth(*operands, causal)
    assert np.abs(error).max() < 4e-3
    assert np.sqrt(np.mean(error**2)) < 4.5e-4


@pytest.mark.parametrize("causal", [False, True])
def test_scaled_scores_stay_in_psum_where_sbuf_is_full(causal: bool) -> None:
    """The places differ, the numbers do not."""
    operands = random_heads(16, 4)
    scarce, wide = (
        attention(load("tiny", [f"sbuf.partition_bytes={n}"]), *operands, causal=causal) for n in (2048, 8192)
    )
    for program, in_psum in ((scarce, True), (wide, False)):
        places = {one.dst.space for one in program.queues[Queue.SCALAR] if one.reduce and one.dst}
        assert places == {Space.PSUM if in_psum else Space.SBUF}
    assert np.array_equal(context(scarce), context(wide))


def test_a_query_that_sees_one_key_returns_its_value() -> None:
    """Also if later keys would win by far: what a query does not see has no part in its maximum."""
    rng = np.random.default_rng(5)
    q = np.ones((1, 8, 8), np.float32)
    k = np.zeros((1, 8, 8), np.float32)
    k[0, 1:] = 1e4
    v = rng.standard_normal((1, 8, 8), np.float32)
    found = context(attention(TINY, q, k, v, causal=True))
    assert np.array_equal(found[0, 0], v[0, 0].astype(ml_dtypes.bfloat16).astype(np.float32))
