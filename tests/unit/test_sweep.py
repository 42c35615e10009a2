"""Sweep files: what they expand to, and one sentence for everything that is wrong with one."""

from pathlib import Path
from typing import Any

import pytest

from firmware.views import KernelError
from rtl.contract.config import ConfigError, load
from sim.errors import PlexusError
from sim.explore.analysis import over_seeds, pareto, sensitivity, varied
from sim.explore.outcome import exact, flat
from sim.explore.plan import make_plan
from sim.explore.points import points_of
from sim.explore.rows import Rows
from sim.explore.sweep import Objective, Sweep, read_sweep
from sim.explore.table import make_table, write_csv
from sim.layer_table import read_layers
from sim.toolchain import ROOT

GEMM = '[[workload]]\nname = "gemm"\nparams = {m = 32, k = 64, n = 64}\n'
HEAD = 'format = 1\nbase = "tiny"\n'
PLAIN = ["dma.classes=1", "dma.indirect=false", "gpsimd.enabled=false", "sbuf.adders=false"]


def sweep(tmp_path: Path, text: str, *, head: str = HEAD, tail: str = GEMM) -> Sweep:
    path = tmp_path / "s.toml"
    path.write_text(head + text + tail)
    return read_sweep(path)


def test_axes_multiply_zips_go_together_variants_come_behind(tmp_path: Path) -> None:
    found = sweep(
        tmp_path,
        "seeds = [0, 1]\n"
        '[[axis]]\nfield = "hbm.latency_ns"\nvalues = [25, 50]\n'
        '[[axis]]\nzip = {"dma.rings" = [1, 2], "tensor.mx" = [true, false]}\n'
        '[[axis]]\nfield = "hbm.bytes_per_cycle"\nrange = {from = 4, to = 32, steps = 4, scale = "log"}\n'
        '[[variant]]\nname = "few"\nset = {"psum.banks" = 2}\n',
        tail='[[workload]]\nname = "gemm"\nparams = {m = 8, k = [8, 16], n = 8, resident = false}\n',
    )
    assert len(found.variants) == 2 * 2 * 4 + 1 and found.named == {16: "few"}
    assert found.variants[0] == {
        "hbm.latency_ns": 25, "dma.rings": 1, "tensor.mx": True, "hbm.bytes_per_cycle": 4
    }  # fmt: skip
    assert [v["hbm.bytes_per_cycle"] for v in found.variants[:4]] == [4, 8, 16, 32]
    assert found.workloads[1] == ("gemm", {"m": "8", "k": "16", "n": "8", "resident": "false"}, "")
    points = points_of(found)
    assert len(points) == 17 * 2 * 2 and len({point.key for point in points}) == len(points)
    assert points[-1].variant == "few" and points[-1].seed == 1
    assert points[0].command == (
        "plexus run gemm --config tiny --set hbm.latency_ns=25 --set dma.rings=1 --set tensor.mx=true "
        "--set hbm.bytes_per_cycle=4 -p m=8 -p k=8 -p n=8 -p resident=false"
    )


def test_a_key_is_of_what_the_base_says(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[dma]\nrings = 3\n')
    head = 'format = 1\nbase = "mine.toml"\n'
    (first,) = points_of(sweep(tmp_path, "", head=head))
    assert first.base == str(tmp_path / "mine.toml") and first.command.startswith(
        f"plexus run gemm --config {first.base}"
    )
    (tmp_path / "mine.toml").write_text('base = "tiny"\n[dma]\nrings = 4\n')
    assert points_of(sweep(tmp_path, "", head=head))[0].key != first.key


def test_a_draw_from_the_grid_is_the_same_again(tmp_path: Path) -> None:
    axes = "".join(
        f'[[axis]]\nfield = "{field}"\nrange = {{from = 1, to = 100, steps = 50}}\n'
        for field in ("hbm.latency_ns", "hbm.bytes_per_cycle")
    )
    first = sweep(tmp_path, axes + "[random]\npoints = 40\n")
    again = sweep(tmp_path, axes + "[random]\npoints = 40\n")
    other = sweep(tmp_path, axes + "[random]\npoints = 40\nseed = 1\n")
    assert first.variants == again.variants != other.variants and len(first.variants) == 40
    assert len({tuple(v.items()) for v in first.variants}) == 40


WRONG = {
    "has 'axes', which is nothing; do you mean 'axis'": "axes = 3\n",
    "hbm.latncy_ns', which is no field; the nearest is 'hbm.latency_ns'": (
        '[[axis]]\nfield = "hbm.latncy_ns"\nvalues = [1]\n'
    ),
    "must be a list of at least one": '[[axis]]\nfield = "dma.rings"\nvalues = []\n',
    "dma.rings in axis 1 has 2 twice": '[[axis]]\nfield = "dma.rings"\nvalues = [1, 2, 2]\n',
    "dma.rings is varied by two axes": '[[axis]]\nfield = "dma.rings"\nvalues = [1]\n' * 2,
    "not as long as each other": '[[axis]]\nzip = {"dma.rings" = [1, 2], "psum.banks" = [2]}\n',
    "at least two fields": '[[axis]]\nzip = {"dma.rings" = [1, 2]}\n',
    "needs field, and values or range": '[[axis]]\nfield = "dma.rings"\n',
    "fewer whole numbers than 9 steps": '[[axis]]\nfield = "dma.rings"\nrange = {from = 1, to = 4, steps = 9}\n',
    "needs at least 2 steps": '[[axis]]\nfield = "dma.rings"\nrange = {from = 4, to = 1, steps = 3}\n',
    "must be linear or log": '[[axis]]\nfield = "dma.rings"\nrange = {from = 1, to = 4, steps = 2, scale = "exp"}\n',
    "more than 10,000": "".join(
        f'[[axis]]\nfield = "{field}"\nrange = {{from = 1, to = 900, steps = 200}}\n'
        for field in ("hbm.latency_ns", "hbm.bytes_per_cycle")
    ),
    "points of random must be from 1 to the 2 of the grid": (
        '[random]\npoints = 3\n[[axis]]\nfield = "dma.rings"\nvalues = [1, 2]\n'
    ),
    "seeds must be whole numbers from 0": "seeds = [-1]\n",
    "seeds has 1 twice": "seeds = [1, 1]\n",
    "column:min or column:max": 'objectives = ["cycles"]\n',
    "a check is golden, none or sample=N": 'check = "some"\n',
    "needs name and set": '[[variant]]\nname = "x"\n',
    "two variants are called 'x'": '[[variant]]\nname = "x"\nset = {}\n' * 2,
    "timeout_seconds must be a whole number above 0": "timeout_seconds = 0\n",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_with_a_sweep_is_one_sentence(tmp_path: Path, words: str) -> None:
    with pytest.raises(PlexusError) as caught:
        sweep(tmp_path, WRONG[words])
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_other_wrong_files(tmp_path: Path) -> None:
    for text, words in (
        ("format = 2\n" + GEMM, "needs a line format = 1, not 2"),
        ('format = 1\nbase = "tiny"\n', "at least one [[workload]]"),
        (HEAD + '[[workload]]\nname = "gem"\n', "there is no workload 'gem'"),
        (HEAD + '[[workload]]\nname = "gemm"\nparams = {kk = 3}\n', "gemm has no parameter 'kk'; the nearest is 'k'"),
        (HEAD + GEMM + '[[workload]]\nname = "switch"\n', "a sweep is of one system"),
        ("format = \n", "is not valid TOML"),
    ):
        path = tmp_path / "wrong.toml"
        path.write_text(text)
        with pytest.raises((PlexusError, ConfigError, KernelError)) as caught:
            read_sweep(path)
        assert words in str(caught.value)
    with pytest.raises(ConfigError, match="there is no sweep file"):
        read_sweep(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="there is no configuration 'tinny'"):
        sweep(tmp_path, "", head='format = 1\nbase = "tinny"\n')


def test_as_few_models_as_serve_them_all(tmp_path: Path) -> None:
    found = sweep(
        tmp_path,
        '[[axis]]\nfield = "sbuf.partition_bytes"\nvalues = [4096, 16384]\n'
        '[[axis]]\nfield = "hbm.latency_ns"\nvalues = [1, 10001]\n'
        '[[axis]]\nfield = "psum.banks"\nvalues = [4, 8]\n',
    )
    plan = make_plan(points_of(found), tmp_path)
    assert [sorted(group.model or ()) for group in plan.groups] == [
        sorted([*PLAIN, "hbm.latency_ns=1", "sbuf.partition_bytes=16384"]),
        sorted([*PLAIN, "hbm.latency_ns=1", "psum.banks=8", "sbuf.partition_bytes=16384"]),
    ]
    assert [len(group.points) for group in plan.groups] == [2, 2] and len(plan.refused) == 4
    assert all("hbm.latency_ns must be from 1 to 10000, not 10001" in why for _, why in plan.refused)
    smaller = sweep(tmp_path, '[[axis]]\nfield = "sbuf.partition_bytes"\nvalues = [2048, 4096]\n')
    models = [group.model for group in make_plan(points_of(smaller), tmp_path).groups]
    assert [sorted(model or ()) for model in models] == [PLAIN]  # tiny's own, as plain programs need it


def test_programs_of_gpsimd_cores_have_models_of_their_own(tmp_path: Path) -> None:
    """Vectors or none make no other model of a program that starts no core, and two of one that does."""
    head, vectors = 'format = 1\nbase = "tiny"\n', '[[axis]]\nfield = "gpsimd.vectors"\nvalues = [true, false]\n'
    path = tmp_path / "cores.toml"
    path.write_text(
        f'{head}{vectors}[[workload]]\nname = "dma"\n[[workload]]\nname = "gpsimd"\nparams = {{program = "iota"}}\n'
        '[[workload]]\nname = "moe"\nparams = {router = "gpsimd"}\n'
    )
    groups = make_plan(points_of(read_sweep(path)), tmp_path).groups
    assert sorted((sorted(group.model or []), len(group.points)) for group in groups) == [
        ([], 2),
        (PLAIN, 2),
        (["gpsimd.vectors=false"], 2),
    ]


def test_a_model_that_a_plan_names_can_be_built(tmp_path: Path) -> None:
    """Of a file with shares of its own, which plain programs do not need, and programs of cores do."""
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "tiny"\n[dma]\nweights = [3, 1, 5, 2]\n')
    path = tmp_path / "own.toml"
    path.write_text(
        f'format = 1\nbase = "{mine}"\n[[axis]]\nfield = "dma.classes"\nvalues = [4]\n{GEMM}'
        '[[workload]]\nname = "gpsimd"\nparams = {program = "iota"}\n'
    )
    groups = make_plan(points_of(read_sweep(path)), tmp_path).groups
    shares = [load(str(mine), group.model or []).dma.weights for group in groups]
    assert sorted(shares) == [(3, 1, 5, 2), (8, 4, 2, 1)]


def test_what_cores_may_ask_for_makes_models(tmp_path: Path) -> None:
    head, axis = 'format = 1\nbase = "tiny"\n', '[[axis]]\nfield = "sbuf.adders"\nvalues = [true, false]\n'
    path = tmp_path / "adders.toml"
    path.write_text(f'{head}{axis}{GEMM}[[workload]]\nname = "gpsimd"\nparams = {{program = "iota"}}\n')
    groups = make_plan(points_of(read_sweep(path)), tmp_path).groups
    assert sorted((sorted(group.model or []), len(group.points)) for group in groups) == [
        ([], 1),
        (PLAIN, 2),
        (["sbuf.adders=false"], 1),
    ]


def test_rows_outlive_a_torn_line_and_other_sources(tmp_path: Path) -> None:
    rows = Rows(tmp_path, "a")
    for key in "xyz":
        rows.add({"key": key, "status": "ok"})
    whole = rows.path.read_bytes()
    rows.path.write_bytes(whole + b'{"key":"w","sta')
    again = Rows(tmp_path, "a")
    assert sorted(again.found) == ["x", "y", "z"] and rows.path.read_bytes() == whole
    other = Rows(tmp_path, "b")
    assert other.found == {} and other.stale == 3
    other.add({"key": "x", "status": "fault"})
    third = Rows(tmp_path, "b")
    assert third.stale == 2 and third.found["x"]["status"] == "fault"
    assert Rows(tmp_path, "a", fresh=True).found == {} and not rows.path.exists()
    rows.path.write_text("nonsense\n")
    with pytest.raises(PlexusError, match=r"line 1 of .* is no row; --fresh begins anew"):
        Rows(tmp_path, "a")


def _row(variant: str, cycles: int, area: int, seed: int = 0, **fields: Any) -> dict[str, Any]:
    sets = {f"set {name}": value for name, value in fields.items()}
    return {"variant": variant, "workload": "gemm", "seed": seed, "status": "ok", "param m": "8", **sets,
            "cycles": cycles, "area": area}  # fmt: skip


def test_pareto_by_hand() -> None:
    both = [Objective("cycles", True), Objective("area", True)]
    table = [_row("a", 10, 5), _row("b", 8, 6), _row("c", 8, 7), _row("d", 12, 5), _row("e", 10, 5), _row("f", 1, 1)]
    table[5]["status"] = "mismatch"
    assert pareto(table, both) == [0, 1, 4]
    assert pareto(table, [Objective("cycles", False)]) == [3]
    other = dict(table[3], **{"param m": "9"})
    assert pareto([*table, other], both) == [0, 1, 4, 6]


def test_sensitivity_by_hand() -> None:
    """cycles = latency^1 * rings^0: latency explains all, with elasticity 1."""
    table = [_row(f"{a}{b}", 10 * a, 1, latency=a, rings=b) for a in (1, 2, 4) for b in (1, 2)]
    found = sensitivity(table, "cycles")
    assert [one["field"] for one in found] == ["latency", "rings"]
    assert found[0]["share"] == pytest.approx(1) and found[0]["elasticity"] == pytest.approx(1)
    assert found[0]["spearman"] == pytest.approx(1)
    assert found[1]["share"] == pytest.approx(0) and found[1]["elasticity"] == pytest.approx(0)
    assert varied(table) == ["set latency", "set rings"]
    assert sensitivity([_row("a", 5, 1, latency=1), _row("b", 5, 1, latency=2)], "cycles") == []


def test_seeds_are_equal_or_least_median_most() -> None:
    table = [_row("a", 10, 1, seed) for seed in range(3)] + [_row("b", 10 + seed, 1, seed) for seed in range(3)]
    first, second = over_seeds(table, "cycles")
    assert first["equal"] and first["seeds"] == 3
    assert not second["equal"] and (second["min"], second["median"], second["max"]) == (10, 11, 12)


def test_a_report_becomes_columns_and_a_table(tmp_path: Path) -> None:
    report = {
        "cycles": 7,
        "match": True,
        "engines": {"tensor": {"busy": 3}},
        "tool_versions": {"x": "1"},
        "wall_seconds": 2.0,
    }
    columns = flat(report)
    assert [
        name for name in ("cycles", "operations.3.cpu_seconds", "cpu_parts.run", "total_cpu_seconds") if exact(name)
    ] == ["cycles"]
    assert columns == {"cycles": 7, "match": True, "engines.tensor.busy": 3, "wall_seconds": 2.0}
    found = sweep(
        tmp_path,
        '[[axis]]\nfield = "dma.rings"\nvalues = [1, 2]\n[[variant]]\nname = "far"\nset = {"hbm.latency_ns" = 9}\n',
    )
    points = points_of(found)
    rows = {p.key: {"status": "ok", "report": columns} for p in points[1:]}
    table = make_table(points, rows, found.base_values)
    assert [row["set dma.rings"] for row in table] == [2, 2] and [row["set hbm.latency_ns"] for row in table] == [25, 9]
    write_csv(table, tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert len(lines) == 3 and "wall_seconds" not in lines[0] and "engines.tensor.busy" in lines[0]


def test_layers_of_a_table_are_rows(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("Layer, M, N, K,\nfirst, 8, 16, 24,\n\nagain, 8, 16, 24\n")
    found = sweep(
        tmp_path, "", tail='[[workload]]\nname = "gemm"\nlayers = "net.csv"\nparams = {dtype = ["bf16", "fp16"]}\n'
    )
    points = points_of(found)
    assert [(p.layer, p.params["dtype"]) for p in points] == [
        ("first", "bf16"), ("first", "fp16"), ("again", "bf16"), ("again", "fp16")
    ]  # fmt: skip
    assert points[0].params == {"m": "8", "k": "24", "n": "16", "dtype": "bf16"}
    assert points[0].key == points[2].key != points[1].key
    rows = {points[0].key: {"status": "ok", "report": {"cycles": 5}}}
    assert [row["layer"] for row in make_table(points, rows, {})] == ["first", "again"]


def test_convolutions_become_products_of_their_windows(tmp_path: Path) -> None:
    path = tmp_path / "conv.csv"
    head = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"
    path.write_text(
        head + "conv1, 230, 230, 7, 7, 3, 64, 2,\nsame, 58, 58, 3, 3, 64, 64, 1,\nfc, 1, 1, 1, 1, 512, 10, 1,\n"
    )
    assert read_layers(path) == [
        ("conv1", {"m": str(112 * 112), "k": "147", "n": "64"}),
        ("same", {"m": str(56 * 56), "k": "576", "n": "64"}),
        ("fc", {"m": "1", "k": "512", "n": "10"}),
    ]
    for line, words in (
        ("x, 5, 5, 7, 7, 3, 64, 2", "line 2 of .* has a filter of 7 x 7 on an input of 5 x 5"),
        ("x, 5, 5, 3, 3, , 64, 2", "line 2 of .* has no channels: a whole number from 1 belongs there, not ''"),
        ("x, 5, 5, 3, 3, 4, 64", "has no strides"),
        (", 5, 5, 3, 3, 4, 64, 1", "has no name of its own: ''"),
        ("", "has no layer"),
    ):
        path.write_text(head + line + "\n")
        with pytest.raises(PlexusError, match=words):
            read_layers(path)
    path.write_text("Layer, M, N\nx, 1, 2\n")
    with pytest.raises(PlexusError, match="needs columns Layer, M, N, K, or Layer name and ifmap height"):
        read_layers(path)
    with pytest.raises(PlexusError, match="m, n and k come from the layers"):
        sweep(tmp_path, "", tail='[[workload]]\nname = "gemm"\nlayers = "conv.csv"\nparams = {m = 3}\n')
    with pytest.raises(PlexusError, match="layers are products, so the workload is gemm, not dma"):
        sweep(tmp_path, "", tail='[[workload]]\nname = "dma"\nlayers = "conv.csv"\n')


def test_sparse_weights_are_the_transposed_product(tmp_path: Path) -> None:
    path = tmp_path / "sparse.csv"
    path.write_text(
        "Layer, M, N, K, Sparsity,\na, 5, 6, 64, 2:4,\nb, 5, 6, 64, 4:4,\nc, 5, 6, 64,,\nd, 5, 6, 64, 1 : 4,\n"
    )
    whole = {"m": "5", "k": "64", "n": "6"}
    turned = {"m": "6", "k": "64", "n": "5"}
    assert read_layers(path) == [
        ("a", turned | {"sparsity": "2:4"}), ("b", whole), ("c", whole), ("d", turned | {"sparsity": "1:4"}),
    ]  # fmt: skip
    for text, words in (
        ("3:4", "line 2 of .* has the sparsity 3:4; the array has 4:16, 4:12, 4:8, 2:8, 2:4, 1:4, 1:2"),
        ("5:4", "has the sparsity '5:4': N:M belongs there, with N from 1 to M, or nothing"),
        ("half", "has the sparsity 'half': N:M"),
        ("0:4", "has the sparsity '0:4': N:M"),
    ):
        path.write_text(f"Layer, M, N, K, N:M\na, 5, 6, 64, {text}\n")
        with pytest.raises(PlexusError, match=words):
            read_layers(path)


@pytest.mark.parametrize("path", sorted((ROOT / "sweeps").glob("*.toml")), ids=lambda path: path.stem)
def test_sweeps_that_come_along_are_whole(path: Path, tmp_path: Path) -> None:
    points = points_of(read_sweep(path))
    assert points and not make_plan(points, tmp_path).refused


def test_resnet50_has_the_multiply_adds_of_its_paper() -> None:
    """Table 1: 3.8 10^9 with the layers as often as they come; here with the strides in the 3 x 3 ones, 4.1 10^9."""
    blocks = {"conv2": 3, "conv3": 4, "conv4": 6, "conv5": 3}
    times = {f"{name}_reduce": count - 1 for name, count in blocks.items()}
    times |= {f"{name}_expand": count for name, count in blocks.items()}
    times |= {f"{name}_window": count - 1 for name, count in blocks.items()} | {"conv2_window": 3}
    times["conv2_expand"] += 1  # its shortcut has the same size
    layers = read_layers(ROOT / "sweeps" / "resnet50.csv")
    assert set(times) <= {name for name, _ in layers}
    macs = sum(times.get(name, 1) * int(p["m"]) * int(p["k"]) * int(p["n"]) for name, p in layers)
    assert 4.05e9 < macs < 4.15e9
