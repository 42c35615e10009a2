"""Tables of models: each has what a layer needs, a hole is one sentence, and operations are those of the model."""

from pathlib import Path

import pytest

from firmware.models.operations import Layer, Operation, operations
from firmware.models.table import FOLDER, models, read_model
from firmware.workloads import find_workload
from sim.cli import main

GOOD = (FOLDER / "llama3-8b.toml").read_text()
BLOCK = GOOD[GOOD.index("[feed_forward]") :]


def layer(model: str, phase: str = "prefill", tokens: int | None = 64, **more: object) -> list[Operation]:
    """The operations of a layer by name and phase."""
    asked = {"batch": 1, "dtype": "bf16", "sliding": False} | more
    return operations(Layer(model=read_model(model), phase=phase, tokens=tokens, **asked))  # pyright: ignore[reportArgumentType]


def products(rows: list[Operation]) -> int:
    """Multiply-adds of the products with weights."""
    sizes = ((one.params, one.repeats) for one in rows if one.workload == "gemm")
    return sum(p["m"] * p["k"] * p["n"] * repeats for p, repeats in sizes)


@pytest.mark.parametrize("name", models())
def test_every_table_is_whole_and_says_where_it_is_from(name: str) -> None:
    model = read_model(name)
    assert model.name == name and len(model.source) > 10
    rows = layer(name, tokens=None if model.family == "convolutions" else 64)
    assert len(rows) >= 10 and len({one.name for one in rows}) == len(rows)
    for one in rows:
        find_workload(one.workload).complete(one.params)  # parameters that it has, in their limits


@pytest.mark.parametrize(
    ("name", "weights"),
    # The parameters of a layer without norms and biases: by the model card of each, over its layers.
    [
        ("llama3-8b", 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336),
        ("gpt-oss-120b", 2 * 2880 * 4096 + 2 * 2880 * 512 + 2880 * 128 + 128 * 3 * 2880 * 2880),
        ("bert-base", 4 * 768 * 768 + 2 * 768 * 3072),
        ("resnet50", 25_502_912),  # torchvision: 25,557,032 with norms and the bias of the last layer
        (
            "deepseek-v3",
            7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168 + 7168 * 256
            + 257 * 3 * 7168 * 2048,
        ),
    ],
)  # fmt: skip
def test_weights_are_those_of_the_model(name: str, weights: int) -> None:
    assert sum(one.weights for one in layer(name, tokens=None if name == "resnet50" else 64)) == weights


def test_resnet_has_the_multiply_adds_of_the_paper() -> None:
    """Table 1 says 3.8 x 10^9 with the stride in the first of three; in the second, as it is built since, 4.09."""
    assert products(layer("resnet50", tokens=None)) == 4_089_184_256


def test_rows_of_a_decoder() -> None:
    rows = {one.name: one for one in layer("llama3-8b", tokens=64)}
    assert list(rows) == [
        "attention_norm", "q", "k", "v", "rope", "attention", "o", "attention_add", "ffn_norm", "gate", "up",
        "activation", "down", "ffn_add",
    ]  # fmt: skip
    assert rows["attention"].params == {
        "heads": 32, "kv_heads": 8, "head": 128, "seq": 64, "queries": 64, "causal": True, "sinks": False,
    }  # fmt: skip
    decoded = {one.name: one.params for one in layer("llama3-8b", "decode", 64, batch=3)}
    assert decoded["attention"]["queries"] == 1 and decoded["attention"]["kv_heads"] == 24
    assert decoded["q"]["m"] == 3 and decoded["rope"]["first"] == 63


def test_window_and_sinks_of_a_layer() -> None:
    plain, sliding = ({one.name: one.params for one in layer("gpt-oss-120b", sliding=s)} for s in (False, True))
    assert "window" not in plain["attention"] and sliding["attention"]["window"] == 128
    assert plain["attention"]["sinks"]


def test_tokens_go_evenly_to_experts() -> None:
    """64 tokens x 4 are 2 for each of 128 experts; a single one goes to 4 of them."""
    rows = {one.name: one for one in layer("gpt-oss-120b")}
    assert (rows["expert_up"].params["m"], rows["expert_up"].repeats) == (2, 128)
    rows = {one.name: one for one in layer("gpt-oss-120b", "decode")}
    assert (rows["expert_up"].params["m"], rows["expert_up"].repeats) == (1, 4)


def test_latent_attention_decodes_from_the_latent_vector() -> None:
    """One head of keys for all: 512 of the vector and 64 that are turned; values are the vector itself."""
    prefill, decode = ({one.name: one for one in layer("deepseek-v3", phase)} for phase in ("prefill", "decode"))
    assert (prefill["attention"].params["head"], prefill["attention"].params["values"]) == (192, 128)
    attended = decode["attention"].params
    assert (attended["kv_heads"], attended["head"], attended["values"]) == (1, 576, 512)
    assert decode["q_to_latent"].repeats == 128 and "kv_up" not in decode


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("heads = 32 ", "# ", "mine.toml has no attention.heads: a whole number from 1 belongs there"),
        ("kv_heads = 8 ", "kv_heads = 0 ", "attention.kv_heads must be a whole number from 1, not 0"),
        ("width = 4096 ", "# ", "mine.toml has no width: a whole number from 1 belongs there"),
        ("hidden = 14336 ", 'hidden = "14336" ', "feed_forward.hidden must be a whole number from 1, not '14336'"),
        ("gated = true ", "gated = 1 ", "feed_forward.gated must be true or false, not 1"),
        ("[feed_forward]", "[feedforward]", "mine.toml has feedforward, which no table has"),
        ("hidden = 14336 ", "hiden = 14336 ", "mine.toml has feed_forward.hiden, which no table has"),
        ('family = "decoder"', 'family = "decodr"', "one of decoder, encoder, convolutions, not 'decodr'"),
        ("source = ", "# ", "mine.toml has no source: a text belongs there"),
        ("kv_heads = 8 ", "kv_heads = 5 ", "attention.heads must be a multiple of attention.kv_heads (5), not 32"),
        ("theta = 500000.0 ", "theta = -1 ", "attention.theta must be a number above 0, not -1"),
        ("[attention]", "[attention", "mine.toml is not valid TOML"),
        ('family = "decoder"', 'family = "convolutions"', "mine.toml has no [[convolutions]]"),
        (BLOCK, "", "no section [feed_forward] or [experts]"),
    ],
)  # fmt: skip
def test_a_hole_is_one_sentence(
    was: str, now: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert GOOD.count(was) == 1
    (tmp_path / "mine.toml").write_text(GOOD.replace(was, now))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "layer", "-p", "model=mine.toml"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("plexus: ") and says in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["layer", "-p", "model=llama4"], "there is no model 'llama4'; there are bert-base"),
        (["layer", "-p", "model=absent.toml"], "no model file absent.toml"),
        (["layer", "-p", "model=bert-base", "-p", "phase=decode"], "is an encoder"),
        (["layer", "-p", "model=resnet50", "-p", "tokens=5"], "takes images (batch), no tokens"),
        (["layer", "-p", "sliding=true"], "Llama 3 8B has no layer with a window"),
        (["layer", "-p", "tokens=0"], "tokens must be at least 1, not 0"),
        (["layer", "-p", "dtype=int8"], "dtype must be one of"),
        (["layer", "--waves", "x.vcd"], "layer has no --waves"),
        (["gemms"], "gemms needs a table of layers: -p file=FILE.csv"),
        (["gemms", "-p", "file=absent.csv"], "absent.csv cannot be read"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err
