"""torch.compile(..., backend="plexus") on the golden machine of `tiny`: results, what is kept, what is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

import plexus  # noqa: E402
import sim.torch.compiled as parts  # noqa: E402
import sim.torch.coverage as coverage  # noqa: E402

nn, F = torch.nn, torch.nn.functional
GOLDEN = {"config": "tiny", "device": "golden"}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="plexus", dynamic=False, options=GOLDEN | options)


def cosine(a: Any, b: Any) -> float:
    return float(F.cosine_similarity(a.flatten().double(), b.flatten().double(), dim=0))


def layers() -> Any:
    return nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 8)).eval()


def test_import_plexus_is_enough_for_torch_to_find_the_backend() -> None:
    assert "plexus" in torch._dynamo.list_backends()


def test_a_model_gives_what_torch_gives_and_builds_once() -> None:
    model, x = layers(), torch.randn(5, 16)
    run = compiled(model)
    assert cosine(run(x), model(x)) > 0.9999 and plexus.torch.last().built == 1
    y = torch.randn(5, 16)
    assert cosine(run(y), model(y)) > 0.9999
    call = plexus.torch.last()
    assert call.built == 0 and len(call.results) == 1 and call.build_seconds < 2 and not call.on_cpu
    assert call.reports[0]["device"] == "golden" and call.cycles is None


def test_products_in_fp32_are_nearer() -> None:
    model, x = layers(), torch.randn(5, 16)
    near, far = ((compiled(model, products=p)(x) - model(x)).abs().max() for p in ("fp32", "bf16"))
    assert near < 1e-5 < far < 1e-2


def test_changed_parameters_are_noticed() -> None:
    model, x = layers(), torch.randn(5, 16)
    run = compiled(model)
    run(x)
    model[0].weight.mul_(-2)
    assert cosine(run(x), model(x)) > 0.9999 and plexus.torch.last().built == 1
    run(x)
    assert plexus.torch.last().built == 0


def test_what_the_machine_has_not_is_torchs_and_listed() -> None:
    def model(x: Any) -> Any:
        return torch.cumsum(F.relu(x), 1) + 1

    x = torch.randn(4, 6)
    assert torch.allclose(compiled(model)(x), model(x))
    call = plexus.torch.last()
    assert [one.operator for one in call.on_cpu] == ["aten.cumsum"] and len(call.results) == 2
    assert "test_compile.py:" in call.on_cpu[0].line
    with pytest.raises(plexus.Error, match=r"test_compile.py:\d+: aten.cumsum is not computed on tiny") as told:
        compiled(model, fallback=False)(x)
    assert isinstance(told.value, RuntimeError) and "\n" not in str(told.value)


def test_embeddings_are_the_hosts_and_no_fallback() -> None:
    model = nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8)).eval()
    ids = torch.tensor([1, 7, 7])
    assert cosine(compiled(model, fallback=False)(ids), model(ids)) > 0.99999
    assert [one.host for one in plexus.torch.last().on_cpu] == [True]


def test_masks_of_positions_are_constants() -> None:
    def model(x: Any) -> Any:
        n = x.shape[0]
        mask = torch.arange(n)[None, :] <= torch.arange(n)[:, None]
        return (x @ x.t()).masked_fill(~mask, float("-inf")).softmax(-1)

    x = torch.randn(6, 8)
    assert cosine(compiled(model, fallback=False)(x), model(x)) > 0.9999
    assert not plexus.torch.last().on_cpu


def test_bfloat16_stays_bfloat16() -> None:
    model, x = layers().bfloat16(), torch.randn(5, 16).bfloat16()
    y = compiled(model)(x)
    assert y.dtype == torch.bfloat16 and cosine(y, model(x)) > 0.999


def test_several_results_and_inputs_that_are_results() -> None:
    def model(x: Any) -> Any:
        return x, F.relu(x), x.sum(), (x > 0)

    x = torch.randn(3, 5)
    for got, want in zip(compiled(model)(x), model(x)):
        assert got.dtype == want.dtype and torch.allclose(got.float(), want.float(), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"confg": "tiny"}, "there is no option 'confg'; there are config,"),
        ({"config": "huge"}, "huge"),
        ({"device": "gpu"}, "device must be rtl or golden, not 'gpu'"),
        ({"products": "int8"}, "products must be bf16 or fp32, not 'int8'"),
        ({"fallback": "no"}, "fallback is True or False, not 'no'"),
        ({"check": "some"}, "check"),
        ({"folder": 3}, "folder is a path, a text or a pathlib.Path, not 3"),
        ({"settings": {"tensor.rows": "many"}}, "tensor.rows"),
    ],
)
def test_wrong_options_end_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(plexus.Error, match=sentence) as told:
        compiled(layers(), **options)(torch.randn(2, 16))
    assert "\n" not in str(told.value)


def test_backward_and_dynamic_shapes_are_refused() -> None:
    with torch.enable_grad(), pytest.raises(plexus.Error, match="forward only"):
        compiled(layers())(torch.randn(2, 16))
    run = torch.compile(F.relu, backend="plexus", dynamic=True, options=GOLDEN)
    with pytest.raises(plexus.Error, match="dynamic=False"):
        run(torch.randn(3, 4))


def test_a_dtype_without_format_is_torchs_or_refused() -> None:
    x = torch.randn(3, 4, dtype=torch.float64)
    assert torch.equal(compiled(F.relu)(x), F.relu(x))
    assert "no float64" in plexus.torch.last().on_cpu[0].why
    with pytest.raises(plexus.Error, match="no float64"):
        compiled(F.relu, fallback=False)(x)


def test_programs_know_the_users_line_and_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = []
    emit = parts.emit

    def kept(cfg: Any, graph: Any, arrays: Any) -> Any:
        graphs.append(graph)
        return emit(cfg, graph, arrays)

    monkeypatch.setattr(parts, "emit", kept)
    compiled(lambda x: F.silu(x) + 1)(torch.randn(2, 16))
    assert [(node.label, node.origin.split(":")[0]) for node in graphs[0].nodes] == [
        ("aten.silu", "test_compile.py"),
        ("aten.add.Tensor", "test_compile.py"),
    ]


def test_programs_leave_their_reports_in_folders(tmp_path: Path) -> None:
    run = compiled(layers(), folder=tmp_path)
    run(torch.randn(2, 16))
    run(torch.randn(2, 16))
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.json")) == [
        "1-program_0/report.json",
        "2-program_0/report.json",
    ]


def test_the_page_has_the_table_of_the_code() -> None:
    page = coverage.PAGE.read_text()
    assert coverage.with_table(page) == page, "python -m sim.torch.coverage --write"
    assert coverage.count() >= 40
