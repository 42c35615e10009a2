"""PyTorch on the RTL of `tiny`, every bit beside the golden machine: a compiled model, operators of the device."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

import plexus  # noqa: E402
from sim.page.summary import line_rows  # noqa: E402
from sim.toolchain import ROOT  # noqa: E402
from sim.trace.instructions import attributed  # noqa: E402
from sim.trace.recorded import load_trace  # noqa: E402

pytestmark = pytest.mark.regress
nn, F = torch.nn, torch.nn.functional
RTL = {"config": "tiny", "device": "rtl"}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield
    plexus.torch.device_options()


class Attention(nn.Module):
    """Norm, attention of grouped heads, sum."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.query, self.key, self.value = nn.Linear(16, 16), nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, x: Any) -> Any:
        h = self.norm(x)
        q, k, v = (f(h).view(1, 6, -1, 4).transpose(1, 2) for f in (self.query, self.key, self.value))
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return x + F.gelu(context.transpose(1, 2).reshape(6, 16))


def test_a_compiled_layer_leaves_the_golden_machines_bits() -> None:
    model, x = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 8)).eval(), torch.randn(5, 16)
    run = torch.compile(model, backend="plexus", options=RTL)
    assert F.cosine_similarity(run(x).flatten(), model(x).flatten(), dim=0) > 0.9999
    first = plexus.torch.last()
    run(x)
    second = plexus.torch.last()
    assert first.cycles == second.cycles and first.cycles and (first.built, second.built) == (1, 0)
    assert second.build_seconds < 2
    assert first.reports[0]["match"] is True and first.reports[0]["end"] == "done"


def test_attention_leaves_the_golden_machines_bits() -> None:
    model, x = Attention().eval(), torch.randn(6, 16)
    got = torch.compile(model, backend="plexus", options=RTL | {"fallback": False})(x)
    assert F.cosine_similarity(got.flatten(), model(x).flatten(), dim=0) > 0.9999
    call = plexus.torch.last()
    assert len(call.results) == 1 and not call.on_cpu and call.results[0].report["match"] is True


def test_operators_of_the_device_leave_the_golden_machines_bits() -> None:
    plexus.torch.device_options(**RTL)
    x = torch.randn(4, 6)
    there = x.to("plexus")
    for function in (lambda y: y * y + 1, lambda y: y.softmax(0), lambda y: y.sum(1), lambda y: y @ y.t()):
        assert (function(there).cpu() - function(x)).abs().max() < 5e-2
        assert plexus.torch.last().cycles and plexus.torch.last().reports[0]["match"] is True


def test_the_page_of_a_program_has_operators_with_their_lines(tmp_path: Path) -> None:
    layer = nn.Linear(16, 24).eval()
    run = torch.compile(lambda x: F.relu(layer(x)), backend="plexus", options=RTL | {"folder": tmp_path})
    run(torch.randn(5, 16))
    recorded = load_trace(tmp_path / "1-program_0")
    lines = [row[0] for row in line_rows(recorded, attributed(recorded))]
    assert any(re.fullmatch(r"\w+\.py:\d+ aten.t \+ aten.addmm \+ aten.relu", line) for line in lines), lines


def test_examples_of_the_page_print_what_it_says() -> None:
    page = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", page, re.M | re.S)
    assert len(examples) == 2
    names: dict[str, Any] = {"__name__": "example"}
    for code, says in examples:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "docs/pytorch.md", "exec"), names)
        told, want = (re.sub(r"[\d,]+ cycles", "N cycles", text) for text in (out.getvalue(), says))
        assert told == want
