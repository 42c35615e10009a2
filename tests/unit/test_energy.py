"""Events of programs, what they weigh, the index: arithmetic by hand; whatever is wrong is one sentence."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import Config, ConfigError, load, named
from rtl.contract.memmap import Space
from sim.build.sources import sources_of
from sim.cli import main
from sim.energy import measure
from sim.energy import table as table_module
from sim.energy.anchor_events import anchor_units
from sim.energy.core.counts import events_of
from sim.energy.core.macros import rows_of
from sim.energy.core.registers import CLOCKS
from sim.energy.core.spent import clock_edges
from sim.energy.core.walks import quadrants_of, words_walked
from sim.energy.energy_of import ASSUMPTIONS, Assumption, energy_of, index_of
from sim.energy.figures import FIGURES, Figures, read_figures
from sim.energy.run_energy import finished
from sim.energy.values import KINDS
from sim.errors import PlexusError
from sim.explore import energies
from sim.explore.points import points_of
from sim.explore.sweep import read_sweep

TINY = named("tiny")


def program(workload: str, cfg: Config = TINY, **params: Any) -> Program:
    return find_workload(workload).build(cfg, params, 0)


def pattern(offset: int, *dims: tuple[int, int], start: int = 0, count: int = 8) -> AccessPattern:
    return AccessPattern(
        space=Space.SBUF, dtype=1, partition_start=start, partition_count=count, offset=offset, dims=dims
    )


@pytest.mark.parametrize(
    ("offset", "dims", "size", "words"),
    [
        (0, ((1, 8),), 2, 2),
        (6, ((1, 8),), 2, 3),
        (0, ((4, 8),), 2, 8),
        (0, ((0, 8),), 2, 1),  # the same one again and again
        (0, ((1, 2), (4, 3), (0, 2)), 2, 6),  # rows of half a word, twice
        (0, ((1, 8),), 8, 8),
        (8, ((-1, 4),), 2, 2),
    ],
)
def test_a_word_that_holds_the_next_element_is_not_read_again(
    offset: int, dims: tuple[tuple[int, int], ...], size: int, words: int
) -> None:
    assert words_walked(pattern(offset, *dims), size) == words


def test_quadrants() -> None:
    assert [quadrants_of(pattern(0, (1, 1), start=s, count=c), 32) for s, c in ((0, 32), (8, 8), (0, 9), (24, 1))] == [
        4, 1, 2, 1
    ]  # fmt: skip


# Rows of RAM that the RTL reads and writes, SBUF's and PSUM's: counted in waves (tests/system/test_energy.py does so).
RTL_ROWS = {
    ("gemm", (("m", 16), ("k", 16), ("n", 24))): (336, 352, 144, 96),
    ("gemm", (("m", 16), ("k", 64), ("n", 70), ("dtype", "mxfp4"))): (990, 938, 420, 280),
    ("gemm", (("m", 20), ("k", 64), ("n", 24), ("sparsity", "4:16"))): (896, 752, 216, 144),
    ("softmax", (("rows", 20), ("columns", 48), ("online", 16))): (1080, 730, 0, 0),
    ("attention", (("seq", 24), ("head", 8))): (668, 900, 328, 216),
    ("layernorm", (("rows", 11), ("columns", 40))): (1964, 1572, 0, 0),
    ("transpose", ()): (14336, 20480, 4096, 2048),
    ("dma", (("rows", 20), ("row_bytes", 77), ("direction", "both"))): (280, 304, 0, 0),
}


@pytest.mark.parametrize(("work", "rows"), RTL_ROWS.items(), ids=lambda one: one[0] if isinstance(one[0], str) else "")
def test_rows_of_ram_are_those_that_the_rtl_reaches(work: tuple[str, Any], rows: tuple[int, ...]) -> None:
    events = events_of(program(work[0], **dict(work[1])))
    groups = ("sbuf_rows_read", "sbuf_rows_written", "psum_rows_read", "psum_rows_written")
    assert tuple(sum(events[group].values()) for group in groups) == rows


@pytest.mark.parametrize(
    ("dtype", "name", "numbers"), [("bf16", "one bf16", 1), ("mxfp8", "quad e4m3fn", 4), ("mxfp4", "quad e2m1", 4)]
)
def test_beats_of_a_full_array_are_its_multiply_adds(dtype: str, name: str, numbers: int) -> None:
    made = program("gemm", m=16, k=64, n=40, dtype=dtype)
    events = events_of(made)
    assert events["pe_beats"] == {name: made.macs // numbers} and events["pe_passes"] == {}
    blocks = (64 // 8 // numbers) * (16 // 8)
    assert events["pe_loads"]["all"] >= blocks * 8 * 8 * 8
    assert sum(events["psum_adds"].values()) == blocks * 40 * 8
    assert events["dma_bytes"] == made.hbm_read_bytes + made.hbm_written_bytes


def test_rows_outside_an_operand_pass_sums() -> None:
    events = events_of(program("gemm", m=8, k=3, n=10))
    assert events["pe_beats"] == {"one bf16": 3 * 10 * 8} and events["pe_passes"] == {"all": 5 * 10 * 8}


def test_fp32_takes_four_passes() -> None:
    events = events_of(program("gemm", m=8, k=8, n=10, dtype="fp32"))
    assert events["pe_beats"] == {"high fp32": 2 * 640, "low fp32": 2 * 640}


def test_a_function_with_a_table_reads_it() -> None:
    events = events_of(program("ffn", tokens=8, width=16, hidden=16))
    functions = {n: count for n, count in events["scalar_elements"].items() if n not in ("copy", "relu", "square")}
    assert functions and events["table_rows_read"]["scalar"] == sum(functions.values())


WEIGHTS = {"fp32 add": 1000, "fp32 multiply": 3000, "load": 2, "pass": 3, "psum add": 5, "psum write": 4}
WEIGHTS |= {"beat one bf16": 100, "unpack one bf16": 10, "beat quad e4m3fn": 130, "unpack quad e4m3fn": 13}
WEIGHTS |= {"vector copy x1": 20, "vector copy x4": 50, "vector multiply add x1": 60, "vector compare x4": 40}
WEIGHTS |= {"scalar plain": 70, "scalar table": 90}
OF_KIND = {"zeros": 0.5, "normal": 1.0, "bits": 1.5}
FIXED = Figures(
    {
        "anchor": {"fp32_add_pj": 1.0, "fp32_multiply_pj": 3.0},
        "sram": {"fixed_pj": 6.0, "root_pj": 0.01, "low": 0.5, "high": 2.0},
        "clock": {"low": 0.25, "typical": 0.5, "high": 1.0},
        "hbm": {"low": 2.0, "typical": 4.0, "high": 8.0},
    }
)
ENGINE = {"busy": 100, "idle": 700, "stall": {"semaphore": 50, "fetch": 50, "fill": 100}}
CLOCKS_OF_RUN = {"cycles": 1000, "engines": dict.fromkeys(("tensor", "vector", "scalar", "dma"), ENGINE)}
CLOCKS_OF_RUN["engines"]["gpsimd"] = {"busy": 0, "idle": 1000, "stall": {}}


def table(scale: float = 1.0) -> dict[str, Any]:
    about = {"unit": "a unit", "per": "event", "registers": 4, "registers_written": 2}
    events = [{"event": e, **about, **{k: w * OF_KIND[k] for k in KINDS}} for e, w in WEIGHTS.items()]
    for row in events[2:]:
        for kind in KINDS:
            row[kind] *= scale
    return {
        "events": events,
        "registers": {clock: {"flip_flops": 10, "delay_bits": 0} for clock in CLOCKS},
        "clock_ge": 3.0,
        "rams": {
            "sbuf": [{"bits": 128, "macro_bytes": 10000}],
            "psum": [{"bits": 64, "macro_bytes": 10000}],
            "table": [{"bits": 64, "macro_bytes": 10000}],
            "dma buffer": [{"bits": 64, "macro_bytes": 10000}],
        },
    }


def report(**events: Any) -> dict[str, Any]:
    groups = "pe_beats pe_loads pe_passes row_beats psum_adds vector_beats scalar_elements"
    groups += " sbuf_rows_read sbuf_rows_written psum_rows_read psum_rows_written table_rows_read"
    return {
        "end": "done",
        "events": {**{group: {} for group in groups.split()}, "dma_bytes": 0, **events},
        "hbm_bytes_read": 0,
        "hbm_bytes_written": 0,
        "config_resolved": {"tensor": {"clock_mhz": 2400}, "vector": {"clock_mhz": 1200}, "scalar": {"clock_mhz": 800}},
        **CLOCKS_OF_RUN,
    }


def parts(values: Mapping[str, Any], **assumed: str) -> dict[str, float]:
    return energy_of(values, table(), FIXED).parts[Assumption(**assumed)]


def test_edges_of_clocks() -> None:
    edges = clock_edges(report())
    assert edges["root"] == 1000 and edges["tensor"] == edges["dma"] == 200  # busy and fill: not what waits outside
    assert edges["vector"] == 100 and edges["scalar"] == pytest.approx(200 / 3)
    assert edges["memory"] == pytest.approx(1000 * (1 - 0.8**4))


def test_each_part_by_hand() -> None:
    run = report(
        pe_beats={"one bf16": 7, "quad e5m2": 2},
        pe_loads={"all": 3},
        pe_passes={"all": 4},
        row_beats={"one bf16": 1},
        psum_adds={"add": 2, "write": 3},
        vector_beats={"copy x2": 3, "special x1": 1, "quantize x4": 1},
        scalar_elements={"relu": 2, "gelu": 1},
        sbuf_rows_read={"moving": 5, "dma": 1},
        sbuf_rows_written={"dma": 4},
        psum_rows_read={"tensor": 2},
        table_rows_read={"scalar": 1},
        dma_bytes=16,
    ) | {"hbm_bytes_read": 1, "hbm_bytes_written": 2}
    found = parts(run)
    assert found["tensor"] == 7 * 100 + 2 * 130 + 3 * 2 + 4 * 3 + 10
    assert found["psum adders"] == 2 * 5 + 3 * 4
    assert found["vector"] == 3 * (20 + 30 / 3) + 60 + 40
    assert found["scalar"] == 2 * 70 + 90
    # 1 pJ for 1000 toggles, and 3 for 3000: a thousand toggles a pJ; a row of 64 bits in 10,000 bytes is 7 pJ
    assert found["sbuf"] == pytest.approx(10 * 2 * 7 * 1000)
    assert found["psum"] == pytest.approx(2 * 7 * 1000) and found["table"] == pytest.approx(7 * 1000)
    assert found["dma buffer"] == pytest.approx(2 * 2 * 7 * 1000)
    assert found["hbm"] == pytest.approx(24 * 4 * 1000)
    assert found["clock, root"] == 1000 * 10 * 2 * 3.0 * 0.5
    assert energy_of(run, table(), FIXED).total(Assumption()) == pytest.approx(sum(found.values()))


def fabric(**events: int) -> dict[str, Any]:
    plain = {"cycles": 100, "devices": 2, "beats": 50, "payload_beats": 30, "stored_beats": 20, "wire_bits": 7}
    return {"end": "done", "events": plain | events}


def fabric_table() -> dict[str, Any]:
    weights = {"encode payload": 10, "encode nop": 1, "crc check payload": 8, "crc check nop": 2}
    weights |= {"fec check payload": 4, "fec check nop": 0.5, "lanes": 3, "crossbar": 12}
    own = [{"event": e, **{k: w * OF_KIND[k] for k in KINDS}} for e, w in weights.items()]
    rams = ("decoder buffer", "send store", "retry buffer", "receive pool")
    return table() | {
        "events": table()["events"] + own,
        "registers": {"link": {"flip_flops": 11, "delay_bits": 0}},
        "rams": {name: [{"bits": 64, "macro_bytes": 10000}] for name in rams},
    }


WIRED = Figures({**FIXED.values, "wire": {"low": 1.0, "typical": 4.0, "high": 6.0}})


def test_each_part_of_a_link_and_a_switch_by_hand() -> None:
    found = energy_of(fabric(lane_cycles=200), fabric_table(), WIRED).parts[Assumption()]
    row = 7 * 1000  # of 64 bits in 10,000 bytes
    assert found == pytest.approx(
        {
            "encoders": 30 * 10 + 20 * 1,
            "decoders": 30 * 12 + 20 * 2.5,
            "lanes": 2 * 200 * 3,
            "clock, link": 100 * 2 * 2 * 3.0 * 11 * 0.5,
            "decoder buffer": 2 * 50 * row,
            "send store": 2 * 20 * row,
            "retry buffer": (20 + 30) * row,
            "receive pool": 2 * 20 * row,
            "wire": 7 * 4 * 1000,
        }
    )
    switch = energy_of(fabric(devices=1, crossbar_beats=20, outputs=5), fabric_table(), WIRED).parts[Assumption()]
    assert switch["crossbar"] == 20 / 5 * 12 and "lanes" not in switch
    assert switch["clock, link"] == found["clock, link"] / 2


def test_an_index_of_a_link_is_by_beats_that_came_through() -> None:
    one, half = (energy_of(fabric(stored_beats=n), fabric_table(), WIRED) for n in (20, 10))
    index = index_of(half, one)
    assert index.typical == pytest.approx(2 * half.total(Assumption()) / one.total(Assumption()))
    assert 1 < index.low <= index.typical <= index.high < 2


def test_assumptions_are_made_everywhere_at_once() -> None:
    run = report(pe_beats={"one bf16": 8}, sbuf_rows_read={"moving": 1}) | {"hbm_bytes_read": 1}
    assert len(ASSUMPTIONS) == 3**5
    assert parts(run, data="zeros")["tensor"] == 400 and parts(run, data="bits")["tensor"] == 1200
    assert parts(run, sram="high")["sbuf"] == pytest.approx(4 * parts(run, sram="low")["sbuf"])
    assert parts(run, bits="high")["hbm"] == pytest.approx(4 * parts(run, bits="low")["hbm"])
    assert parts(run, clock="high")["clock, dma"] == 4 * parts(run, clock="low")["clock, dma"]
    # data of zeros make the anchor cheaper, too: what a pJ is worth in toggles goes with it
    assert parts(run, data="zeros")["hbm"] == pytest.approx(parts(run)["hbm"] / 2)
    uneven = Figures({**FIXED.values, "anchor": {"fp32_add_pj": 1.0, "fp32_multiply_pj": 12.0}})
    low, typical, high = (uneven.pj_a_toggle(1000, 3000, level) for level in ("low", "typical", "high"))
    assert (low, high) == (0.001, 0.004) and typical == pytest.approx(math.sqrt(low * high))


def test_an_index_is_of_the_same_assumptions() -> None:
    run = report(pe_beats={"one bf16": 8000}) | {"hbm_bytes_read": 10}
    one = energy_of(run, table(), FIXED)
    same = index_of(one, one)
    assert (same.low, same.typical, same.high) == (1.0, 1.0, 1.0)
    more = index_of(energy_of(run | {"hbm_bytes_read": 20}, table(), FIXED), one)
    assert 1 < more.low < more.typical < more.high < 2
    # if HBM were all there is, no figure would matter: twice the bytes are twice the energy
    quiet = {"cycles": 0, "engines": dict.fromkeys(ENGINE_NAMES, {"busy": 0, "idle": 0, "stall": {}})}
    alone = [energy_of(report() | quiet | {"hbm_bytes_read": n}, table(), FIXED) for n in (20, 10)]
    twice = index_of(*alone)
    assert (twice.low, twice.high) == (pytest.approx(2.0), pytest.approx(2.0))


ENGINE_NAMES = ("tensor", "vector", "scalar", "gpsimd", "dma")


def test_shares_sum_to_the_whole() -> None:
    energy = energy_of(report(pe_beats={"one bf16": 8000}) | {"hbm_bytes_read": 10}, table(), FIXED)
    shares = energy.shares()
    assert sum(typical for _, typical, _ in shares.values()) == pytest.approx(1.0)
    assert all(low <= typical <= high for low, typical, high in shares.values())


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"end": "fault", "end_message": "a queue faulted"}, "the run did not end (a queue faulted)"),
        ({"events": None}, "the report has no events"),
        ({"events": {**report()["events"], "psum_adds": {"twist": 1}}}, "the table of events has no 'psum twist'"),
        ({"events": {}}, "the report or its table of events is not whole: 'pe_beats'"),
    ],
)
def test_a_run_without_energy_is_a_sentence(values: dict[str, Any], says: str) -> None:
    run = report() | values
    if run["events"] is None:
        del run["events"]
    with pytest.raises(PlexusError) as error:
        energy_of(run, table(), FIXED)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_the_stated_figures_are_those_of_their_sources() -> None:
    figures = read_figures()
    for kib, pj in ((8, 7.5), (32, 8.5), (1024, 14.0)):  # Jouppi et al. 2021, table 2: 64 bits
        assert figures.sram_pj(64, kib * 1024, "typical") == pytest.approx(pj, rel=0.05)
    for level, pj in (("low", 250), ("high", 450)):
        assert figures.bit_pj("hbm", level) * 64 == pytest.approx(pj, rel=0.01)
    assert all("source" in section for section in figures.values.values())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[hbm]", "[hbn]", "no section [hbm]"),
        ("fixed_pj = 6.9", "fixed_pj = 0", "fixed_pj of [sram]"),
        ("fixed_pj = 6.9", "fixed_pj = '6'", "must be a number above 0, not '6'"),
        ("fixed_pj = 6.9", "fixed_pj = nan", "must be a number above 0, not nan"),
        ("fixed_pj = 6.9", "fixd = 1\nfixed_pj = 6.9", "'fixd', which is nothing"),
        ("low = 3.9", "low = 6.0", "low, typical and high of [hbm]"),
        ("low = 3.9", "low =", "s.toml"),
    ],
)
def test_wrong_figures_are_a_sentence(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FIGURES.read_text().replace(old, new))
    with pytest.raises((PlexusError, ConfigError)) as error:
        read_figures(path)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_macros_hold_what_their_memories_hold() -> None:
    for name in ("tiny", "small", "full"):
        cfg = named(name)
        (sbuf,), (psum,) = rows_of(cfg)["sbuf"], rows_of(cfg)["psum"]
        assert sbuf.macro_bytes * cfg.sbuf.banks * cfg.dma.engines == cfg.partitions * cfg.sbuf.partition_bytes
        assert psum.macro_bytes * 2 * cfg.psum.banks == cfg.partitions * cfg.psum.partition_bytes
        assert sbuf.macro_bytes * 8 % sbuf.bits == psum.macro_bytes * 8 % psum.bits == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tinny"], "tinny"),
        (["tiny", "--set", "sbuf.banks=3"], "sbuf.banks must be a power of two"),
        (["tiny", "--base", "x"], "--base, --table and --figures are for one"),
        (["{}"], "has no report.json"),
        (["{}", "--set", "sbuf.banks=8"], "--set cannot change"),
    ],
)
def test_wrong_words_get_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["energy", *(word.format(tmp_path) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("plexus: ") and err.count("\n") == 1 and says in err


@pytest.mark.parametrize("values", [{"link": 3}, {"link": {"lanes": 3}}, {"switch": {}}, {"engines": {}}])
def test_a_report_that_is_not_whole_is_a_sentence(values: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps({"config": "x8", "end": "done", "events": {}, **values}))
    with pytest.raises(PlexusError, match=r"report\.json is not whole: it does not tell its configuration"):
        finished(tmp_path)


def run_folder(folder: Path, cfg: Config, **more: Any) -> Path:
    """A folder with the report of a run of nothing much."""
    folder.mkdir(parents=True)
    base = {"workload": "gemm", "params": {"m": 8}, "seed": 0, "config": cfg.name, "config_hash": cfg.hash}
    base |= {"config_base": "tiny", "config_changes": {}, "config_file": None}
    values = report(pe_beats={"one bf16": 8000}) | base | {"hbm_bytes_read": 10} | more
    (folder / "report.json").write_text(json.dumps(values))
    return folder


@pytest.fixture
def stubbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked for of tables; of a fixed measurement."""
    asked: list[str] = []

    def measured(units: Any, step: Any) -> list[dict[str, Any]]:
        asked.append("measured")
        return table()["events"]

    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(table_module, "measured", measured)
    monkeypatch.setattr(table_module, "registers_of", lambda cfg, step: table()["registers"])
    return asked


def test_the_energy_of_a_run_and_its_index(
    tmp_path: Path, stubbed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (run_folder(tmp_path / name, TINY, hbm_bytes_read=n) for name, n in (("one", 10_000), ("two", 20_000)))
    assert main(["energy", str(two), "--base", str(one), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values == json.loads((two / "energy.json").read_text())
    assert 1 < values["index"]["low"] <= values["index"]["typical"] <= values["index"]["high"] < 2
    assert values["total"] == pytest.approx(sum(values["parts"].values()))
    assert set(values["figures"]) == {"anchor", "sram", "clock", "hbm", "wire"}
    assert main(["energy", str(one), "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "gemm on tiny: where its energy goes" in told and "hbm" in told and "index" not in told
    assert not any(word in told.lower() for word in ("watt", "joule", "pj"))
    assert (tmp_path / "out" / "energy.json").exists() and not (one / "energy.json").exists()
    run_folder(tmp_path / "other", TINY, params={"m": 9}, seed=3)
    assert main(["energy", str(one), "--base", str(tmp_path / "other")]) == 0
    assert "other (m=9, seed=3): the same" in " ".join(capsys.readouterr().out.split())
    run_folder(tmp_path / "softmax", TINY, workload="softmax")
    assert main(["energy", str(one), "--base", str(tmp_path / "softmax")]) == 2
    assert "one is a gemm, " in capsys.readouterr().err


def test_a_table_of_before_serves_its_own_hardware(
    tmp_path: Path, stubbed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["energy", "tiny", "--out", str(tmp_path / "t")]) == 0
    told = capsys.readouterr().out
    assert "beat one bf16" in told and "clock" in told and stubbed == ["measured"]
    folder = run_folder(tmp_path / "run", TINY)
    file = str(tmp_path / "t" / "energy.json")
    assert main(["energy", str(folder), "--table", file]) == 0 and stubbed == ["measured"]
    wide = load("tiny", ["vector.exp_rate=1"])
    other = run_folder(tmp_path / "other", wide, config_changes={"vector.exp_rate": 1})
    assert finished(other).cfg == wide
    capsys.readouterr()
    assert main(["energy", str(other), "--table", file]) == 2
    assert "whose hardware is not that of tiny" in capsys.readouterr().err
    (tmp_path / "t" / "energy.json").write_text("{}")
    assert main(["energy", str(folder), "--table", file]) == 2
    assert "is no table of events" in capsys.readouterr().err


SWEEP = 'format = 1\nbase = "tiny"\n{}\n[[axis]]\nfield = "hbm.latency_ns"\nvalues = [50, 100]\n'
SWEEP += '[[workload]]\nname = "gemm"\nparams = {{m = 32, k = 64, n = 64}}\n'


def test_a_sweep_of_energies_has_its_base(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SWEEP.format(""))
    assert not read_sweep(path).energy and len(read_sweep(path).variants) == 2
    for words in ("energy = true", 'objectives = ["energy_index:min"]'):
        path.write_text(SWEEP.format(words))
        sweep = read_sweep(path)
        assert sweep.energy and sweep.variants[2] == {} and sweep.named == {2: "base"}
    path.write_text(SWEEP.format("energy = true").replace("[50, 100]", "[25, 50]"))  # 25 is that of tiny
    assert len(read_sweep(path).variants) == 2
    for words, says in (
        ('objectives = ["energy_best:min"]', "there is no energy 'energy_best'"),
        ('energy = false\nobjectives = ["energy_low:min"]', "so energy cannot be false"),
        ("energy = 1", "energy must be true or false"),
    ):
        path.write_text(SWEEP.format(words))
        with pytest.raises(PlexusError, match=says):
            read_sweep(path)


def test_a_sweep_has_an_index_of_each_run_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    axis = '\n[[axis]]\nfield = "vector.exp_rate"\nvalues = [1, 2, 4]\n'
    path.write_text(SWEEP.format("energy = true") + axis)
    sweep = read_sweep(path)
    points = points_of(sweep)
    for n, point in enumerate(points):
        run_folder(tmp_path / "runs" / point.key, TINY, hbm_bytes_read=1000 * (1 + n))
    asked: list[int] = []

    def stub(cfg: Any, step: Any) -> dict[str, Any]:
        asked.append(cfg.vector.exp_rate)
        if cfg.vector.exp_rate == 2:
            raise PlexusError("Yosys fails on exp: why")
        return table(2.0 if cfg.vector.exp_rate == 1 else 1.0)

    monkeypatch.setattr(energies, "table_of", stub)
    rows = {point.key: {"status": "ok"} for point in points}
    rows[points[0].key] = {"status": "fault"}
    found = energies.energies_of(sweep, points, rows, tmp_path)
    base = points[-1]
    assert base.variant == "base" and found[base.key] == dict.fromkeys(
        ("energy_index", "energy_low", "energy_high"), 1.0
    )
    assert sorted(asked) == [1, 2, 4] and len(points) == 7  # once for each hardware, whatever the latency
    have = {point.variant for point in points if point.key in found}
    assert len(found) == 4 and not any("exp_rate=2" in variant for variant in have)
    assert capsys.readouterr().err.count("has no energy: Yosys fails on exp: why\n") == 1
    columns = [found[point.key]["energy_index"] for point in points if point.key in found]
    assert all(column < 1.5 for column in columns) and len(set(columns)) == 4


def test_the_anchors_are_the_operations_of_the_source() -> None:
    assert [unit.events[0].name for unit in anchor_units()] == ["fp32 add", "fp32 multiply"]


def test_toggles_are_kept_by_how_every_unit_is_driven() -> None:
    """An edit of the events of a core or of a fabric makes their toggles anew."""
    files = sources_of(measure._MODULES).files
    assert {
        f"sim/energy/{name}.py" for name in ("core/tensor_events", "core/vector_events", "fabric/units")
    } <= files.keys()
