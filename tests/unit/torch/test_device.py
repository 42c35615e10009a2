"""The device `plexus`: tensors, modules, and which operators the machine computes."""

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

import plexus  # noqa: E402
from sim.torch.eager.operators import settings  # noqa: E402

F = torch.nn.functional


@pytest.fixture(autouse=True)
def golden() -> Any:
    torch.manual_seed(0)
    plexus.torch.device_options(config="tiny", device="golden")
    settings.on_cpu.clear()
    with torch.no_grad():
        yield
    plexus.torch.device_options()


def here(*shape: int) -> tuple[Any, Any]:
    """The same numbers on the CPU and on the device."""
    x = torch.randn(*shape)
    return x, x.to("plexus")


def test_a_module_moves_there_and_back() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.GELU(), torch.nn.LayerNorm(24), torch.nn.Softmax(-1))
    x, there = here(4, 16)
    want = model(x)
    model.to("plexus")
    assert {p.device.type for p in model.parameters()} == {"plexus"}
    before = len(plexus.torch.calls) and plexus.torch.last()
    got = model(there)
    assert got.device.type == "plexus" and (got.cpu() - want).abs().max() < 5e-3
    assert plexus.torch.last() is not before and not settings.on_cpu
    model.to("cpu")
    assert torch.equal(model(x), want)


def test_gradients_are_torchs_operator_by_operator() -> None:
    """Forward and backward of a small net; a step of SGD leaves its parameters."""
    x, there = here(5, 8)
    models = []
    for device, data in (("cpu", x), ("plexus", there)):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)).to(device)
        with torch.enable_grad():
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            (model(data) ** 2).mean().backward()
            optimizer.step()
        models.append(model)
    for want, got in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert want.grad is not None and got.grad is not None and got.grad.device.type == "plexus"
        assert (got.grad.cpu() - want.grad).abs().max() < 1e-2 and (got.cpu() - want).abs().max() < 1e-3


def test_tensors_are_made_copied_and_printed() -> None:
    x, there = here(2, 3)
    assert torch.equal(there.cpu(), x) and there.tolist() == x.tolist() and there.shape == (2, 3)
    assert repr(there) == repr(x)[:-1] + ", device='plexus:0')"
    for made in (torch.ones(2, 3, device="plexus"), torch.full((2, 3), 1.0, device="plexus")):
        assert torch.equal(made.cpu(), torch.ones(2, 3))
    assert torch.arange(5, device="plexus").tolist() == [0, 1, 2, 3, 4]
    assert torch.nn.Parameter(there).device.type == "plexus"


def test_views_share_their_elements() -> None:
    x, there = here(4, 6)
    there.t()[2:].zero_()
    x.t()[2:].zero_()
    assert torch.equal(there.cpu(), x)
    there[0, 0] = 7.0
    x[0, 0] = 7.0
    assert torch.equal(there.cpu(), x) and torch.equal(there.t().reshape(-1).cpu(), x.t().reshape(-1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x.clone().mul_(3),
        lambda x: x @ x.t(),
        lambda x: torch.where(x > 0, x, -x),
        lambda x: torch.cat([x, x]).sum(0),
        lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
        lambda x: x.max() - x.mean(),
        lambda x: F.rms_norm(x, (6,)),
        lambda x: x.var(-1),
        lambda x: x.bfloat16(),
    ],
)
def test_operators_give_what_torch_gives(function: Any) -> None:
    x, there = here(4, 6)
    got, want = function(there), function(x)
    assert got.device.type == "plexus" and got.dtype == want.dtype and got.shape == want.shape
    assert (got.cpu().float() - want.float()).abs().max() <= 2e-2 * max(1.0, float(want.float().abs().max()))


def test_what_the_machine_has_not_is_torchs_once_or_refused() -> None:
    x, there = here(4, 6)
    for _ in range(2):
        assert torch.equal(torch.cumsum(there, 0).cpu(), torch.cumsum(x, 0))
    (listed,) = [one for one in plexus.torch.on_cpu() if "cumsum" in one.operator]
    assert listed.operator == "aten.cumsum.out" and "test_device.py:" in listed.line
    plexus.torch.device_options(config="tiny", device="golden", fallback=False)
    with pytest.raises(plexus.Error, match=r"test_device.py:\d+: aten.cumsum.out is not computed on tiny"):
        torch.cumsum(there, 0)


def resized(x: Any) -> Any:
    out = torch.empty(0, device=x.device)
    torch.add(x, x, out=out)
    return out


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.t_(),
        lambda x: x.transpose_(0, 1).mul_(2),
        lambda x: x.unsqueeze_(0),
        lambda x: x[:1].squeeze_(0),
        lambda x: x.resize_(2, 3),
        resized,
    ],
)
def test_a_shape_that_changes_in_place_is_the_tensors(function: Any) -> None:
    x, there = here(4, 6)
    got, want = function(there), function(x)
    assert got.device.type == "plexus" and got.shape == want.shape and torch.equal(got.cpu(), want)
    assert there.shape == x.shape and torch.equal(there.cpu(), x) and not settings.on_cpu


def test_a_deep_copy_has_elements_of_its_own() -> None:
    x, there = here(4, 6)
    made = copy.deepcopy([there, there])
    there.zero_()
    assert made[0] is made[1] and made[0].device.type == "plexus" and torch.equal(made[0].cpu(), x)


def test_tensors_of_the_device_are_not_compiled_in_a_sentence() -> None:
    there = here(4, 6)[1]
    with pytest.raises(plexus.Error, match=r"takes tensors on the CPU, and one of shape \[4, 6\] lies on plexus:0"):
        torch.compile(lambda x: x + 1, backend="plexus", dynamic=False)(there)


def test_wrong_options_of_the_device_end_in_a_sentence() -> None:
    with pytest.raises(plexus.Error, match="there is no option 'speed'"):
        plexus.torch.device_options(speed=1)
