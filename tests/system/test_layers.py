"""Layers on the RTL: rows are runs of a core, the report is their sum, and scaled rows are those of the whole."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from firmware.models.operations import Operation
from firmware.workloads import find_workload
from rtl.contract.config import named
from sim.cli import main
from sim.energy.core.counts import events_of
from sim.page.layers import layers_data, layers_differences
from sim.systems.layers import rows
from sim.systems.layers.axes import axis_of
from sim.systems.layers.params import LayersRun
from sim.systems.layers.rows import run_operation
from sim.systems.layers.scaled import line_error
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim


def report_of(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """What `plexus run` leaves."""
    assert main(["run", *words, "--out", str(folder)]) == code
    return json.loads((folder / "report.json").read_text())


def test_a_layer_is_the_sum_of_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(tmp_path, "layer", "-p", "model=toy", "-p", "tokens=20", "--config", "tiny")
    text = capsys.readouterr().out
    assert text.startswith("MATCH  layer on tiny")
    found = report["operations"]
    assert [row["status"] for row in found] == ["ok"] * 14 and report["match"] is True
    assert report["cycles"] == sum(row["layer_cycles"] for row in found)
    assert report["macs"] == sum(row["macs"] for row in found)
    for engine in report["engines"].values():
        assert engine["busy"] + engine["idle"] + sum(engine["stall"].values()) == report["cycles"]
    for row in found:
        assert row["name"] in text and row["cycles"] >= row["bound_cycles"] > 0
        own = json.loads((tmp_path / row["folder"] / "report.json").read_text())
        assert (own["cycles"], own["workload"], own["match"]) == (row["cycles"], row["workload"], True)
    names = {row["name"]: row for row in found}
    assert names["k"]["folder"] == names["v"]["folder"]  # of one size, run once
    # Its MFU is what the products need by themselves over what the layer took.
    needed = sum(row["macs"] / row["peak_macs_a_cycle"] for row in found)
    assert report["tensor_utilization"] == pytest.approx(needed / report["cycles"], abs=1e-6)


def summed(rows: list[dict[str, Any]]) -> Counter[str]:
    """Events of programs that are built anew, by group and name, each as often as the layer does it."""
    found = Counter[str]()
    for row in rows:
        program = find_workload(row["workload"]).build(named("tiny"), row["params"], 0)
        for group, counts in events_of(program).items():
            for name, count in counts.items() if isinstance(counts, dict) else [("", counts)]:
                found[f"{group} {name}"] += row["repeats"] * count
    return found


def test_a_layer_tells_its_events_and_its_rate(tmp_path: Path) -> None:
    toy = (ROOT / "firmware" / "models" / "toy.toml").read_text()
    sparse = toy[: toy.index("[feed_forward]")] + "[experts]\ncount = 4\nactive = 2\nhidden = 32\n"
    (tmp_path / "experts.toml").write_text(sparse)
    model = f"model={tmp_path / 'experts.toml'}"
    report = report_of(tmp_path, "layer", "-p", model, "-p", "tokens=20", "-p", "batch=2", "--config", "tiny")
    told = {
        f"{group} {name}": count
        for group, counts in report["events"].items()
        for name, count in (counts.items() if isinstance(counts, dict) else [("", counts)])
    }
    assert told == {name: count for name, count in summed(report["operations"]).items() if count or name in told}
    assert told["pe_beats one bf16"] > report["macs"] // 2 and any(row["repeats"] > 1 for row in report["operations"])
    seconds = 2 * report["nanoseconds"] * 1e-9  # the toy has two layers
    assert report["metrics"]["tokens_a_second"] == pytest.approx(40 / seconds, rel=1e-4)


def test_a_row_is_the_run_that_its_command_says(tmp_path: Path) -> None:
    words = ["layer", "-p", "model=toy", "-p", "tokens=9", "-p", "phase=decode", "-p", "sliding=true", "--seed", "3"]
    report = report_of(tmp_path / "layer", *words, "--config", "tiny", "--set", "hbm.latency_ns=50")
    row = next(one for one in report["operations"] if one["name"] == "attention")
    assert row["command"].startswith("plexus run attention --config tiny --set hbm.latency_ns=50 -p heads=4")
    alone = report_of(tmp_path / "alone", *row["command"].split()[2:])
    assert alone["cycles"] == row["cycles"] and alone["seed"] == 3


def test_a_page_of_a_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two tables side by side; a layer and an operation have nothing to compare."""
    table = tmp_path / "net.csv"
    table.write_text("Layer, M, N, K\nfits, 8, 8, 32\ntoo large, 4000, 4000, 32\n")
    words = ["gemms", "-p", f"file={table}", "--config", "tiny"]
    report = report_of(tmp_path / "a", *words, "--report")
    report_of(tmp_path / "b", *words, "-p", "dtype=mxfp8")
    data = layers_data(report)
    assert [row[0] for row in data["rows"]] == ["fits", "all"] and data["left"][0][:2] == ["too large", "does not fit"]
    assert "unchecked" not in data["verdict"] and data["good"]
    for engine in data["engines"]:
        assert sum(count for _, count in engine["parts"]) == report["cycles"]
    assert 'id="operations"' in (tmp_path / "a" / "report.html").read_text()
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "a/operations/01-fits")]) == 2
    assert "have nothing to compare" in capsys.readouterr().err
    other = json.loads((tmp_path / "b" / "report.json").read_text())
    assert [row[0] for row in layers_differences(report, other)["rows"]] == ["fits", "all"]


def test_a_table_of_products(tmp_path: Path) -> None:
    report = report_of(tmp_path, "gemms", "-p", f"file={ROOT / 'sweeps/products.csv'}", "--config", "tiny")
    first, second, third = report["operations"]
    assert (first["params"]["m"], first["params"]["n"], first["params"]["k"]) == (40, 24, 64)
    assert first["cycles"] == third["cycles"] != second["cycles"]
    assert report["cycles"] == sum(row["cycles"] for row in report["operations"])


def test_what_does_not_fit_is_a_row_and_the_rest_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "net.csv"
    table.write_text("Layer, M, N, K\nfits, 8, 8, 8\ntoo large/for HBM, 4000, 4000, 8\nodd, 8, 8, 9\n")
    words = ["gemms", "-p", f"file={table}", "-p", "dtype=mxfp8", "--config", "tiny"]
    assert main(["run", *words, "--out", str(tmp_path)]) == 2
    assert "nothing of gemms can be run on tiny: k=8 is no multiple of 32" in capsys.readouterr().err
    table.write_text("Layer, M, N, K\nfits, 8, 8, 32\ntoo large/for HBM, 4000, 4000, 32\nodd, 8, 8, 9\n")
    report = report_of(tmp_path, *words)
    assert [row["status"] for row in report["operations"]] == ["ok", "does_not_fit", "refused"]
    assert report["left_out"] == ["too large/for HBM", "odd"] and report["match"] is True
    text = " ".join(capsys.readouterr().out.split())
    assert "does not fit" in text and "odd: k=9 is no multiple of 32" in text


def line(operation: Operation, config: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows of an operation, scaled and whole."""
    found: list[dict[str, Any]] = []
    for scaled in (True, False):
        asked = {"scaled": scaled}
        run = LayersRun(
            workload="layer", params=asked, rows=(operation,), cfg=named(config), check="none", out=folder
        )  # fmt: skip
        found.append(run_operation(run, 1, operation, Console(quiet=True)))
    return found[0], found[1]


def held_out(*sizes: tuple[str, dict[str, Any]]) -> list[Any]:
    """Operations by a name of theirs."""
    ids = ["-".join([workload, *(f"{k}={v}" for k, v in params.items())]) for workload, params in sizes]
    found = [Operation(name=w, workload=w, params=params) for w, params in sizes]
    return [pytest.param(one, id=name) for one, name in zip(found, ids, strict=True)]


BF16 = {"dtype": "bf16", "out": "bf16"}
MXFP8 = {"dtype": "mxfp8", "out": "bf16"}
SHORT = held_out(
    ("gemm", {"m": 24, "k": 64, "n": 4096, **BF16}),
    ("gemm", {"m": 6000, "k": 64, "n": 48, **MXFP8}),
    ("attention", {"heads": 16, "kv_heads": 8, "head": 16, "seq": 64, "queries": 64, "causal": True}),
    ("layernorm", {"rows": 410, "columns": 64, "rms": True}),
    ("elementwise", {"op": "add", "rows": 500, "columns": 960}),
    ("rope", {"tokens": 405, "heads": 4, "head": 16}),
)
LONG = held_out(
    ("gemm", {"m": 64, "k": 1024, "n": 8192, **BF16}),
    ("gemm", {"m": 12288, "k": 512, "n": 96, **BF16}),
    ("gemm", {"m": 256, "k": 1024, "n": 6144, **BF16}),
    ("gemm", {"m": 256, "k": 1024, "n": 8192, **MXFP8}),
    ("gemm", {"m": 8192, "k": 2048, "n": 64, "dtype": "mxfp4", "out": "bf16"}),
    ("attention", {"heads": 12, "kv_heads": 12, "head": 64, "seq": 256, "queries": 256}),
    ("attention", {"heads": 32, "kv_heads": 8, "head": 64, "seq": 256, "queries": 256, "causal": True}),
    ("attention", {"heads": 48, "kv_heads": 48, "head": 48, "values": 32, "seq": 128, "queries": 128, "causal": True}),
    ("attention", {"heads": 128, "kv_heads": 64, "head": 64, "seq": 512, "queries": 1, "causal": True}),
    ("layernorm", {"rows": 2048, "columns": 1024, "rms": True}),
    ("elementwise", {"op": "swiglu", "rows": 2048, "columns": 3072}),
    ("rope", {"tokens": 2048, "heads": 12, "head": 64}),
)


def close(operation: Operation, config: str, folder: Path) -> None:
    """At most a hundredth off, and marked; multiply-adds and bytes are exact."""
    scaled, whole = line(operation, config, folder)
    assert scaled["scaled"] and not whole["scaled"] and scaled["status"] == "ok", scaled["sentence"]
    assert abs(scaled["cycles"] / whole["cycles"] - 1) <= 0.01
    assert scaled["macs"] == whole["macs"] and scaled["bound_cycles"] == pytest.approx(whole["bound_cycles"], rel=0.01)
    assert scaled["simulated_cycles"] < whole["cycles"]
    for engine in scaled["engines"].values():
        assert engine["busy"] + engine["idle"] + sum(engine["stall"].values()) == scaled["cycles"]
        assert min(engine["busy"], engine["idle"], *engine["stall"].values()) >= 0


@pytest.mark.parametrize("operation", SHORT)
def test_scaled_rows_are_those_of_the_whole(operation: Operation, tmp_path: Path) -> None:
    close(operation, "tiny", tmp_path)


@pytest.mark.regress
@pytest.mark.parametrize("operation", LONG)
def test_scaled_rows_of_small(operation: Operation, tmp_path: Path) -> None:
    close(operation, "small", tmp_path)


def scaled_row(operation: Operation, folder: Path) -> dict[str, Any]:
    """Of an operation at `tiny`, of which no bit is compared."""
    run = LayersRun(
        workload="layer", params={"scaled": True}, rows=(operation,), cfg=named("tiny"), check="none", out=folder
    )  # fmt: skip
    return run_operation(run, 1, operation, Console(quiet=True))


def test_what_is_no_line_is_run_whole_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is longer than the line says: by what a change of plan costs."""
    operation = SHORT[0].values[0]
    axis = axis_of(named("tiny"), operation)
    assert axis is not None and axis.name == "n"
    genuine = rows.core_run.run_workload

    def bent(run: Any, console: Console) -> dict[str, Any]:
        report = genuine(run, console)
        return report | {"cycles": report["cycles"] * (103 if run.params["n"] == axis.sizes[2] else 100) // 100}

    monkeypatch.setattr(rows.core_run, "run_workload", bent)
    monkeypatch.setattr(rows, "WHOLE_TIMES", 1)
    row = scaled_row(operation, tmp_path)
    assert row["status"] == "refused" and "is no line along n" in row["sentence"] and "cycles" not in row
    monkeypatch.setattr(rows, "WHOLE_TIMES", axis.total // axis.sizes[2] + 1)
    row = scaled_row(operation, tmp_path)
    plain = LayersRun(
        workload="layer", params={"scaled": False}, rows=(operation,), cfg=named("tiny"), check="none", out=tmp_path
    )  # fmt: skip
    whole = run_operation(plain, 2, operation, Console(quiet=True))
    assert row["status"] == "ok" and row["scaled"] is None and row["cycles"] == whole["cycles"]
    assert row["simulated_cycles"] > whole["simulated_cycles"] and row["cpu_seconds"] > 0


def test_where_the_beginning_bends_a_line_larger_runs_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = Operation(name="norm", workload="layernorm", params={"rows": 700, "columns": 64, "rms": True})
    axis = axis_of(named("tiny"), operation)
    assert axis is not None
    genuine, sizes = rows.core_run.run_workload, list[int]()

    def bent(run: Any, console: Console) -> dict[str, Any]:
        sizes.append(run.params["rows"])
        report = genuine(run, console)
        return report | {"cycles": report["cycles"] * (105 if run.params["rows"] == axis.sizes[0] else 100) // 100}

    monkeypatch.setattr(rows.core_run, "run_workload", bent)
    row = scaled_row(operation, tmp_path)
    further = axis.further()
    assert further is not None and further.sizes[0] == axis.sizes[2] and further.sizes[2] < 700
    assert row["status"] == "ok" and row["scaled"]["sizes"] == list(further.sizes)
    assert sizes == [*axis.sizes, *further.sizes]


def test_the_error_of_a_line_counts_at_the_whole() -> None:
    assert line_error((1, 2, 3), (10, 20, 30), 100) == 0
    assert line_error((1, 2, 3), (1000, 2000, 3001), 100) == pytest.approx(98 / 100_098, rel=0.05)
    assert line_error((1, 2, 3), (100, 200, 306), 4) > 0.01


def test_k_is_never_scaled() -> None:
    """And what would not be worth it, or has another layout, is run whole."""
    long_k = Operation(name="k", workload="gemm", params={"m": 64, "k": 1 << 15, "n": 64, **BF16})
    assert axis_of(named("full"), long_k) is None
    whole = Operation(name="q", workload="gemm", params={"m": 2048, "k": 4096, "n": 2048, **BF16})
    assert axis_of(named("full"), whole) is None
    wide = Operation(name="gate", workload="gemm", params={"m": 2048, "k": 4096, "n": 14336, **BF16})
    axis = axis_of(named("full"), wide)
    assert axis is not None and (axis.name, axis.params(axis.sizes[0])["k"]) == ("n", 4096)
