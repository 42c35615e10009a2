"""Operators where torch has a rule of its own: bytes, rounded numbers, defaults, broadcast heads, who owns a result."""

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

import plexus  # noqa: E402

F = torch.nn.functional
GOLDEN = {"config": "tiny", "device": "golden"}
BYTES = torch.tensor([0, 1, 2, 3, 5, 255], dtype=torch.uint8)
MASKS = torch.tensor([1, 2, 1, 3, 4, 7], dtype=torch.uint8)
WORDS = torch.tensor([0, -3, 7, 300, 70000, -129], dtype=torch.int32)
ROUNDED = torch.tensor([0.1, 0.2, 1.0]).bfloat16()
NUMBERS = torch.tensor([[-3.0, -0.5, 0.25, 2.0], [4.0, 1.5, 1.0, -1.0]])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="plexus", dynamic=False, options=GOLDEN | options)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, y: x & y, (BYTES, MASKS)),
        (lambda x, y: x ^ y, (BYTES, MASKS)),
        (lambda x: ~x, (BYTES,)),
        (lambda x: -x, (BYTES,)),
        (lambda x: x**2, (BYTES,)),
        (lambda x: x.to(torch.bool).float() + 1, (BYTES,)),
        (lambda x: x.to(torch.uint8), (WORDS,)),
        (lambda x: x == 2**40, (WORDS,)),
        (lambda x: x > 0.1, (ROUNDED,)),
        (lambda x: x == 1.001, (ROUNDED,)),
        (lambda x, y: x == y, (ROUNDED, torch.tensor(1.001))),
        (lambda x: x.var(0, correction=2), (NUMBERS,)),
        (lambda x: F.softplus(x, 1, 1.0), (NUMBERS,)),
        (lambda x: F.rms_norm(x, (4,)), ((NUMBERS * 1e-2).bfloat16(),)),
        (lambda x: F.rms_norm(x, (4,)), ((NUMBERS * 1e-3).half(),)),
    ],
)
def test_results_are_torchs(function: Any, args: tuple[Any, ...]) -> None:
    got, want = compiled(function)(*args), function(*args)
    assert got.dtype == want.dtype
    if want.is_floating_point():
        assert torch.allclose(got.float(), want.float(), rtol=1e-2, atol=1e-5)
    else:
        assert torch.equal(got, want)


@pytest.mark.parametrize(
    ("q", "k", "v", "mask"),
    [
        ((1, 4, 5, 8), (1, 4, 6, 8), (1, 1, 6, 8), None),
        ((1, 1, 5, 8), (1, 4, 6, 8), (1, 4, 6, 8), None),
        ((2, 3, 2, 5, 8), (2, 3, 2, 6, 8), (2, 3, 2, 6, 8), (1, 3, 1, 5, 6)),
        ((2, 3, 2, 5, 8), (2, 3, 2, 6, 8), (2, 3, 2, 6, 8), (2, 1, 1, 1, 6)),
    ],
)
def test_heads_batches_and_masks_broadcast(q: Any, k: Any, v: Any, mask: Any) -> None:
    args = [None if shape is None else torch.randn(shape) for shape in (q, k, v, mask)]
    got = compiled(F.scaled_dot_product_attention)(*args)
    want = F.scaled_dot_product_attention(*args)
    assert got.shape == want.shape and (got - want).abs().max() < 2e-2


def test_a_result_that_is_a_constant_is_the_callers() -> None:
    run = compiled(lambda x: (x + 1, torch.arange(3).float() + 1))
    first = run(NUMBERS)[1]
    first.mul_(7)
    assert run(NUMBERS)[1].tolist() == [1, 2, 3]


def test_parameters_written_behind_torchs_back_are_noticed() -> None:
    model = torch.nn.Linear(4, 3)
    run = compiled(model)
    for write in (lambda w: w.data.mul_(-3), lambda w: w.detach().numpy().fill(0.5), lambda w: None):
        write(model.weight)
        assert torch.allclose(run(NUMBERS), model(NUMBERS), atol=5e-2)
    assert plexus.torch.last().built == 0
    with torch.inference_mode():
        other = torch.nn.Linear(4, 3)
        run = compiled(other)
        run(NUMBERS)
        other.weight.mul_(-3)
        assert torch.allclose(run(NUMBERS), other(NUMBERS), atol=5e-2)


def test_hardtanh_in_place_has_its_defaults() -> None:
    plexus.torch.device_options(**GOLDEN)
    there = NUMBERS.to("plexus")
    assert torch.equal(F.hardtanh_(there).cpu(), F.hardtanh(NUMBERS))
    plexus.torch.device_options()
