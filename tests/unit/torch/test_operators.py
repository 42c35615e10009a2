"""Each aten operator of the table, of three shapes, beside torch on the CPU: its nodes computed by NumPy, and by the
golden machine of `tiny`."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

import sim.torch.compiled as compiled  # noqa: E402
from sim.api.result import Result  # noqa: E402
from sim.api.tensor import Tensor  # noqa: E402
from sim.torch.eager.one import one_operator  # noqa: E402
from sim.torch.lowering.bounds import BITS, FUNCTION, PRODUCT, ROUNDED, Bound  # noqa: E402
from sim.torch.lowering.circular import ANGLE_MAX  # noqa: E402
from sim.torch.lowering.registry import find  # noqa: E402
from sim.torch.lowering.table import OPERATORS  # noqa: E402
from sim.torch.options import torch_options  # noqa: E402

Args = tuple[Any, ...]
torch.manual_seed(0)  # operands below are made once
SHAPES = ((7,), (3, 20), (2, 3, 9))
LAST = ((1, 5), (3, 20), (2, 4, 9))
PRODUCTS = ((3, 5, 7), (8, 16, 4), (10, 24, 20))


def normal(*shape: int) -> Any:
    return torch.randn(shape)


def positive(*shape: int) -> Any:
    return torch.rand(shape) * 3 + 0.1


def truths(*shape: int) -> Any:
    return torch.rand(shape) > 0.5


def each(make: Callable[..., Any], *more: Any) -> list[Args]:
    """One tensor, and arguments that stay."""
    return [(make(*shape), *more) for shape in SHAPES]


def pairs(make: Callable[..., Any]) -> list[Args]:
    """Two of one shape, and two that broadcast."""
    return [(make(7), make(7)), (make(3, 20), make(1, 20)), (make(2, 3, 9), make(3, 1))]


def with_number(number: float) -> list[Args]:
    return each(normal, number)


def last(*more: Any) -> list[Args]:
    return [(normal(*shape), *more) for shape in LAST]


UNARY = "exp tanh sigmoid erf relu silu mish sin cos atan sign neg abs gelu softplus".split()
CASES: dict[str, list[Args]] = {
    **{f"aten.{name}.default": each(normal) for name in UNARY},
    **{f"aten.{name}.default": each(positive) for name in ("log", "sqrt", "rsqrt", "reciprocal")},
    **{f"aten.{name}.Tensor": pairs(normal) for name in ("add", "sub", "mul")},
    **{
        f"aten.{name}.default": [(normal(7),), (normal(3, 20) * 50,), (normal(2, 3, 9) * 1e4,)]
        for name in ("sin", "cos")
    },
    "aten.div.Tensor": pairs(positive),
    **{f"aten.{name}.Scalar": with_number(1.75) for name in ("add", "sub", "rsub", "mul", "div")},
    **{f"aten.{name}.default": pairs(normal) for name in ("maximum", "minimum")},
    **{
        f"aten.{name}.Tensor": [(a.round(), b.round()) for a, b in pairs(normal)]
        for name in "eq ne gt ge lt le".split()
    },
    **{f"aten.{name}.Scalar": with_number(0.25) for name in "eq ne gt ge lt le".split()},
    **{f"aten.logical_{name}.default": pairs(truths) for name in ("and", "or", "xor")},
    **{f"aten.bitwise_{name}.Tensor": pairs(truths) for name in ("and", "or", "xor")},
    **{f"aten.{name}_not.default": each(truths) for name in ("logical", "bitwise")},
    "aten.clamp.default": each(normal, -0.5, 0.75),
    "aten.clamp_max.default": each(normal, 0.25),
    "aten.hardtanh.default": each(normal, -1.0, 1.0),
    "aten.pow.Tensor_Scalar": [(normal(7), 2), (positive(3, 20), 1.5), (normal(2, 3, 9), 3)],
    "aten.leaky_relu.default": each(normal, 0.1),
    "aten.addcmul.default": [(normal(*s), normal(*s), normal(*s)) for s in SHAPES],
    "aten.where.self": [(truths(*s), normal(*s), normal(*s)) for s in SHAPES],
    "aten.masked_fill.Scalar": [(normal(*s), truths(*s), -3.0) for s in SHAPES],
    "aten._to_copy.default": each(truths),
    "aten.sum.dim_IntList": [(normal(7), [0]), (normal(3, 20), [1], True), (normal(2, 3, 9), [0, 2])],
    "aten.mean.dim": [(normal(7), [0]), (normal(3, 20), [0]), (normal(2, 3, 9), [1, 2], True)],
    "aten.amax.default": [(normal(7), [0]), (normal(3, 20), [0]), (normal(2, 3, 9), [1, 2], True)],
    "aten.amin.default": [(normal(7), [0]), (normal(3, 20), [1]), (normal(2, 3, 9), [0], True)],
    "aten.var.correction": [(normal(7), [0]), (normal(3, 20), [1]), (normal(2, 3, 9), [2])],
    "aten._softmax.default": [(normal(7), 0, False), (normal(3, 20), 0, False), (normal(2, 3, 9), -1, False)],
    "aten._log_softmax.default": [(normal(7), 0, False), (normal(3, 20), 1, False), (normal(2, 3, 9), 1, False)],
    "aten.native_layer_norm.default": [
        (x, x.shape[-1:], normal(x.shape[-1]), normal(x.shape[-1]), 1e-5) for (x,) in last()
    ],
    "plexus.rms_norm.default": [(x, x.shape[-1:], normal(x.shape[-1]), 1e-5) for (x,) in last()],
    "aten._native_batch_norm_legit_no_training.default": [
        (normal(2, c, *s), normal(c), normal(c), normal(c), positive(c), 0.1, 1e-5)
        for c, s in ((3, ()), (4, (5,)), (2, (3, 3)))
    ],
    "aten.mm.default": [(normal(m, k), normal(k, n)) for m, k, n in PRODUCTS],
    "aten.bmm.default": [(normal(2, m, k), normal(2, k, n)) for m, k, n in PRODUCTS],
    "aten.addmm.default": [(normal(n), normal(m, k), normal(k, n)) for m, k, n in PRODUCTS],
    "aten.mv.default": [(normal(m, k), normal(k)) for m, k, _ in PRODUCTS],
    "plexus.attention.default": [
        (normal(1, 2, 5, 8), normal(1, 2, 6, 8), normal(1, 2, 6, 8), None, False, None, False),
        (normal(1, 4, 9, 8), normal(1, 2, 9, 8), normal(1, 2, 9, 4), None, True, 0.25, True),
        (normal(2, 2, 5, 4), normal(2, 2, 7, 4), normal(2, 2, 7, 4), torch.rand(2, 1, 5, 7) > 0.3, False, None, False),
    ],
}
MOVES: dict[str, list[Args]] = {
    "aten.view.default": [(normal(6), [2, 3]), (normal(3, 20), [60]), (normal(2, 3, 9), [6, 9])],
    "aten.permute.default": [(normal(6, 2), [1, 0]), (normal(3, 20), [0, 1]), (normal(2, 3, 9), [2, 0, 1])],
    "aten.transpose.int": [(normal(6, 2), 0, 1), (normal(3, 20), -1, -2), (normal(2, 3, 9), 0, 2)],
    "aten.t.default": [(normal(6, 2),), (normal(3, 20),), (normal(1, 9),)],
    "aten.expand.default": [(normal(1, 2), [4, 2]), (normal(3, 1), [2, 3, 5]), (normal(2, 1, 9), [2, 3, 9])],
    "aten.unsqueeze.default": each(normal, 0),
    "aten.squeeze.dim": [(normal(1, 2), 0), (normal(3, 1), 1), (normal(2, 1, 9), 1)],
    "aten.cat.default": [
        ([normal(3), normal(4)],),
        ([normal(2, 5), normal(1, 5)],),
        ([normal(2, 3, 4), normal(2, 3, 2)], 2),
    ],
    "aten.stack.default": [([normal(3), normal(3)],), ([normal(2, 5)] * 3, 1), ([normal(2, 3, 4)] * 2, 2)],
    "aten.split.Tensor": [(normal(7), 3), (normal(3, 20), 8, 1), (normal(4, 3, 2), 2)],
    "aten.split_with_sizes.default": [(normal(7), [3, 4]), (normal(3, 20), [5, 15], 1), (normal(4, 3, 2), [1, 3])],
    "aten.unbind.int": [(normal(3),), (normal(3, 20),), (normal(4, 3, 2), 1)],
    "aten.slice.Tensor": [(normal(7), 0, 1, 5), (normal(3, 20), 1, 2, 20, 3), (normal(4, 3, 2), 0, -2, 10)],
    "aten.select.int": [(normal(7), 0, 3), (normal(3, 20), 1, -1), (normal(4, 3, 2), 0, 2)],
    "aten.clone.default": each(normal),
    "aten.repeat.default": [(normal(3), [2]), (normal(2, 5), [3, 1, 2]), (normal(1, 3, 2), [2, 1, 2])],
}
RUNS = [pytest.param(name, i, id=f"{name}-{i}") for name in (*CASES, *MOVES) for i in range(3)]


def near(got: Any, want: Any, bound: Bound) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype
    wide = want.double()
    size = wide.abs().nan_to_num(posinf=0.0).max() if wide.numel() else 0.0
    allowed = bound.relative * (wide.abs() + bound.spread * size) + bound.absolute * (bound is not BITS)
    worst = ((got.double() - wide).abs() - allowed).max()
    assert worst <= 0, f"{float(worst)} beyond the bound {bound.name}"


class NumPyProgram:
    """A graph in the place of a program."""

    def __init__(self, graph: Any):
        self.graph, self.tensors = graph, {value.name: value for value in graph.inputs}


@pytest.fixture(params=["numpy", "golden"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, interpreter: Any) -> str:
    """What computes the nodes."""
    if request.param == "numpy":
        monkeypatch.setattr(compiled, "emit", lambda cfg, graph, arrays: NumPyProgram(graph))

        def run(program: Any, arrays: Any, **options: Any) -> Result:
            graph = program.graph
            found = interpreter(graph, {name: one.bits.bits for name, one in arrays.items()})
            formats = {value.name: value.dtype for value in graph.outputs}
            tensors = {n: Tensor(n, compiled.HostArray(bits, formats[n])) for n, bits in found.items()}
            return Result(tensors=tensors, report={}, cycles=None, device="golden")

        monkeypatch.setattr(compiled, "run", run)
    return request.param


@pytest.mark.parametrize(("name", "place"), RUNS)
def test_an_operator_is_as_near_to_torch_as_its_bound_says(name: str, place: int, machine: str) -> None:
    operator, args = find(name), (CASES | MOVES)[name][place]
    kwargs = {"dtype": torch.float32} if name == "aten._to_copy.default" else {}
    want = operator(*args, **kwargs)
    options = torch_options({"config": "tiny", "device": "golden"})
    one = one_operator(operator, args, kwargs, f"{machine}:1", options)
    assert one.why is None, one.why
    tensors = [t for a in args for t in (a if isinstance(a, list) else [a]) if isinstance(t, torch.Tensor)]
    got = one.run(*tensors)
    many = isinstance(want, (tuple, list))
    bound = OPERATORS[operator].bound
    for g, w in zip(got if many else [got], want if many else [want]):
        near(g, w, bound)


@pytest.mark.parametrize("function", [torch.sin, torch.cos])
@pytest.mark.parametrize("largest", [4.0, 1e4, ANGLE_MAX])
def test_angles_of_many_turns_are_as_near_as_those_of_one(function: Any, largest: float) -> None:
    x = torch.cat([torch.linspace(-largest, largest, 1999), torch.arange(-4, 5) * torch.pi / 2])
    operator = find(f"aten.{function.__name__}.default")
    one = one_operator(operator, (x,), {}, "angles:1", torch_options({"config": "tiny", "device": "golden"}))
    assert (one.run(x).double() - function(x.double())).abs().max() < 1.6e-6


@pytest.mark.parametrize("name", ["aten.sin.default", "aten.cos.default"])
def test_angles_beyond_the_bound_are_no_numbers(name: str) -> None:
    x = torch.tensor([ANGLE_MAX, -ANGLE_MAX, ANGLE_MAX * 1.001, -1e10, torch.inf, torch.nan])
    one = one_operator(find(name), (x,), {}, "beyond:1", torch_options({"config": "tiny", "device": "golden"}))
    assert one.run(x).isnan().tolist() == [False, False, True, True, True, True]


def test_the_table_has_forty_operators_that_are_tested() -> None:
    names = {name.split(".")[1] for name in (*CASES, *MOVES)}
    assert len(names) >= 60 and not {name for name in (*CASES, *MOVES) if find(name) not in OPERATORS}


def test_products_in_fp32_are_near() -> None:
    a, b = normal(9, 17), normal(17, 5)
    options = torch_options({"config": "tiny", "device": "golden", "products": "fp32"})
    one = one_operator(find("aten.mm.default"), (a, b), {}, "a:1", options)
    near(one.run(a, b), a @ b, ROUNDED)
    assert PRODUCT.relative > ROUNDED.relative and FUNCTION.relative > 0
