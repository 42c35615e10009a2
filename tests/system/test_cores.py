"""Cores joined by delayed wires in the native driver: bits of the golden machines, cycles of any number of threads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.image import build_image, build_images
from firmware.kernel import Kernel
from firmware.program import Program
from firmware.views import KernelError
from firmware.workloads import WORKLOADS
from rtl.contract.config import Config, load
from rtl.contract.isa import Cause, Queue
from rtl.contract.memmap import Control, core_place
from rtl.contract.roles import needed
from sim.cli import main
from sim.errors import PlexusError
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.systems.cores.joined import CoresResult, run_cores
from sim.systems.cores.params import CoresRun, parse_cores
from sim.systems.cores.run import run_several
from verif.benches.core.exchange import exchange, misdirected
from verif.golden.cores import GoldenCores
from verif.golden.results import RunResult

pytestmark = pytest.mark.sim

TINY = load("tiny", ["gpsimd.vectors=false"])


def golden(programs: tuple[Program, ...], cores: tuple[int, ...] = ()) -> dict[int, RunResult]:
    images = build_images(programs)
    machines = GoldenCores(programs[0].config, cores or list(images))
    machines.load(images)
    return machines.run()


def same_hbm(result: CoresResult, want: dict[int, RunResult]) -> bool:
    return all(np.array_equal(bits, want[core].hbm[: len(bits)]) for core, bits in result.hbm.items())


def evidence(result: CoresResult) -> list[Any]:
    """All that a run shows but how long the host took."""
    found: list[Any] = [result.end, result.simulated_cycles, dict(result.sent_beats)]
    for core, one in result.results.items():
        counters = [one.cycles, one.engines, one.windows, one.conflicts, one.faults, one.hbm, one.progress]
        found += [core, *counters, one.retired.tolist(), result.hbm[core].tobytes()]
    return found


def several(workload: str, folder: Path, *settings: str, seed: int = 1) -> dict[str, Any]:
    params = parse_cores(workload, settings)
    return run_several(CoresRun(workload=workload, params=params, cfg=TINY, seed=seed, out=folder), Console(quiet=True))


@pytest.mark.parametrize("delay", [1, 24, 200])
def test_exchange_is_the_same_on_any_number_of_threads(delay: int) -> None:
    made = exchange(TINY, np.random.default_rng(4))
    want = golden(made.programs)
    one = run_cores(made.programs, TINY, delay_cycles=delay)
    assert one.end == "done" and same_hbm(one, want)
    for core, name in ((0, "back"), (0, "fetched"), (1, "sum"), (1, "added")):
        assert np.array_equal(one.results[core].outputs[name], made.total.view(np.uint32)), name
    for threads in (2, 5):
        again = run_cores(made.programs, TINY, delay_cycles=delay, threads=threads)
        assert evidence(again) == evidence(one)


def test_wrong_wires_are_noticed() -> None:
    made = exchange(TINY, np.random.default_rng(4))
    right = run_cores(made.programs, TINY)
    late = [run_cores(made.programs, TINY, threads=threads, plant="late") for threads in (1, 2)]
    assert evidence(late[0]) == evidence(right)
    assert evidence(late[1]) != evidence(right)
    lost = run_cores(made.programs, TINY, plant="lost")
    assert lost.end != "done" and not same_hbm(lost, golden(made.programs))


def test_what_is_for_no_core_is_refused() -> None:
    programs, packets = misdirected(TINY)
    want = golden(programs, (0, 1))
    result = run_cores(programs, TINY, cores=(0, 1), threads=2)
    assert result.end == "fault" and same_hbm(result, want)
    (fault,), (expected,) = result.results[0].faults, want[0].faults
    assert fault.cause == expected.cause == Cause.BUS_ERROR and fault.address == expected.address
    assert not result.results[1].faults and result.sent_beats[0] > packets


def _told(cfg: Config, places: tuple[tuple[int, int, int, int], ...]) -> tuple[Program, ...]:
    """A core fills two tiles and tells two others so, which read one each, of different classes."""
    shape = (cfg.partitions, 300)
    first, *others = (Kernel(cfg, f"k{n}", place) for n, place in enumerate(places))
    bits = np.random.default_rng(7).integers(0, 1 << 32, shape, dtype=np.uint32)
    x = first.hbm("x", shape, "uint32", bits)
    for class_, k in enumerate(others, 1):
        mine, its = (
            one.sbuf(f"t{class_}", partitions=shape[0], columns=shape[1], dtype="uint32") for one in (first, k)
        )
        told = k.semaphore("told")
        first.dma(mine[:, :], x[:, :], class_=class_, signal=told)
        k.wait(Queue.SYNC, told, 1)
        k.dma(its[:, :], mine[:, :], class_=class_, ring=0, queue=Queue.SYNC)
        k.dma(k.hbm("y", shape, "uint32")[:, :], its[:, :])
    return tuple(k.program() for k in (first, *others))


@pytest.mark.parametrize(
    ("bits", "places"),
    [
        ("plain", ((0, 1, 0, 0), (0, 0, 2, 3), (0, 15, 0, 1))),
        # servers and racks that the low 12 bits of a place do not tell apart; a model of its own
        pytest.param("gen2", ((0, 1, 0, 0), (0, 17, 0, 0), (1, 1, 0, 0)), marks=pytest.mark.regress),
    ],
)
def test_a_copy_inside_tells_cores_anywhere(bits: str, places: tuple[tuple[int, int, int, int], ...]) -> None:
    cfg = load("tiny", ["gpsimd.vectors=false", f"fabric.endpoint_bits={bits}"])
    programs = _told(cfg, places)
    want = golden(programs)
    result = run_cores(programs, cfg, threads=2)
    assert result.end == "done" and same_hbm(result, want)
    for core in result.results:
        assert core == programs[0].core or np.array_equal(result.results[core].outputs["y"], want[core].outputs["y"])


def test_a_core_without_an_endpoint_number_is_in_no_system() -> None:
    beyond = Kernel(TINY, "beyond", (0, 16, 0, 0)).program()
    with pytest.raises(PlexusError, match=r"core \(0, 16, 0, 0\) has no endpoint number: server must be from 0 to 15"):
        run_cores([Kernel(TINY, "near").program(), beyond], TINY)


def test_packets_of_many_senders_stay_whole() -> None:
    """Three cores fill places of a fourth at once, which sends each of them something too."""
    shape, cores = (TINY.partitions, 300), 4
    kernels = [Kernel(TINY, f"k{n}", core_place(n)) for n in range(cores)]
    rng = np.random.default_rng(2)
    x = [k.hbm("x", shape, "uint32", rng.integers(0, 1 << 32, shape, dtype=np.uint32)) for k in kernels]
    came = [[k.hbm(f"came{m}", shape, "uint32") for m in range(cores)] for k in kernels]
    told = [k.semaphore("told") for k in kernels]
    for n, k in enumerate(kernels):
        for m in [3] if n != 3 else [0, 1, 2]:
            k.dma(came[m][n][:, :], x[n][:, :], class_=n, signal=told[m])
        k.wait(Queue.SYNC, told[n], 3 if n == 3 else 1)
    programs = tuple(k.program() for k in kernels)
    runs = [run_cores(programs, TINY, threads=threads, delay_cycles=7) for threads in (1, 3)]
    assert runs[0].end == "done" and same_hbm(runs[0], golden(programs))
    assert evidence(runs[0]) == evidence(runs[1])


def test_a_core_of_a_system_is_the_core_alone() -> None:
    """Cycles, counters and the times between retired instructions."""
    k = Kernel(TINY, "alone")
    x = k.hbm("x", (TINY.partitions, 64), "fp32", np.ones((TINY.partitions, 64), np.uint32))
    y = k.hbm("y", (TINY.partitions, 64), "fp32")
    tile = k.sbuf("tile", partitions=TINY.partitions, columns=64, dtype="fp32")
    for _ in range(3):
        k.dma(tile[:, :], x[:, :])
        k.vector.tensor_scalar(tile[:, :], tile[:, :], "add", 1.0)
        k.dma(y[:, :], tile[:, :])
    program = k.program()
    joined = run_cores([program], TINY).results[0]
    with VerilatedDevice(TINY, build_core(needed(TINY), joined=True).binary) as device:
        device.load(build_image(program))
        device.core.host_write(Control.CLEAR, 1)  # slower clocks stand then as there
        alone = device.run()
    assert (joined.cycles, joined.engines, joined.hbm) == (alone.cycles, alone.engines, alone.hbm)
    times = [one.retired["cycle"] - one.retired["cycle"][0] for one in (joined, alone)]
    assert np.array_equal(*times)


def test_who_waits_for_ever_is_told() -> None:
    k = Kernel(TINY, "waits", core_place(1))
    k.wait(Queue.SYNC, k.semaphore("never"), 1)
    result = run_cores([Kernel(TINY, "idle").program(), k.program()], TINY)
    assert result.end == "stuck"
    assert result.results[1].progress == {"sync": "0 of 1"} and not result.results[0].progress


@pytest.mark.parametrize("settings", [("cores=4", "tiles=12"), ("cores=2", "buffers=1", "columns=33", "tiles=5")])
def test_forward(tmp_path: Path, settings: tuple[str, ...]) -> None:
    reports = [several("forward", tmp_path, *settings, f"threads={threads}") for threads in (1, 3)]
    for r in reports:
        assert r["match"] is True and r["end"] == "done" and not r["faults"]
    assert reports[0]["cores"] == reports[1]["cores"] and reports[0]["metrics"] == reports[1]["metrics"]
    m, tiles = reports[0]["metrics"], int(dict(s.split("=") for s in settings)["tiles"])
    assert m["forwarded_bytes"] == m["tile_bytes"] * tiles * (len(reports[0]["cores"]) - 1)
    assert 0 < m["bytes_per_cycle"] <= m["bound_bytes_per_cycle"]


def test_ping_pong_takes_as_much_longer_as_the_wire(tmp_path: Path) -> None:
    near, far = (several("ping_pong", tmp_path, f"delay={delay}")["metrics"] for delay in (24, 324))
    assert near["signal_nanoseconds"] <= 30
    assert far["signal_cycles"] - near["signal_cycles"] == pytest.approx(300, abs=1)


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        (("direction=write",), 0.97),
        (("direction=read",), 0.97),
        (("direction=both", "tiles=8"), 0.97),
        (("add=fp32", "columns=120", "tiles=8"), 0.97),
        (("add=bf16", "direction=both"), 0.9),
        (("near=hbm",), 0.85),
        (("near=hbm", "far=hbm", "direction=both"), 0.95),
    ],
)
def test_remote_copies_at_the_rate_of_the_link(tmp_path: Path, settings: tuple[str, ...], share: float) -> None:
    r = several("remote", tmp_path, *settings)
    assert r["match"] is True and r["end"] == "done" and not r["faults"]
    m = r["metrics"]
    assert m["bound_bytes_per_cycle"] == (16 if "far=hbm" in settings else 32)
    assert share * m["bound_bytes_per_cycle"] <= m["bytes_per_cycle"] <= m["bound_bytes_per_cycle"] * 1.02


@pytest.mark.parametrize("settings", [("cores=2", "causal=true", "kv_heads=2"), ("cores=4", "queries=9", "buffers=1")])
def test_split_attention_has_the_bits_of_a_core_alone(tmp_path: Path, settings: tuple[str, ...]) -> None:
    sizes = ("heads=4", "seq=24", "head=8", "values=12", *settings)
    reports = [several("split_attention", tmp_path, *sizes, f"threads={threads}") for threads in (1, 3)]
    for r in reports:
        assert r["match"] is True and r["end"] == "done" and not r["faults"] and not r["outputs_of_numpy"]
    assert reports[0]["cores"] == reports[1]["cores"] and reports[0]["metrics"] == reports[1]["metrics"]
    m, cores, queries = reports[0]["metrics"], len(reports[0]["cores"]), reports[0]["params"]["queries"] or 24
    assert m["forwarded_bytes"] == 4 * queries * 12 * 4 * (cores - 1) // cores
    assert 0 < m["bytes_per_cycle"] <= m["bound_bytes_per_cycle"] and m["tail_cycles"] > m["last_arrival_cycles"]
    assert m["max_abs_error"] < 2**-8
    params = parse_cores("split_attention", sizes)
    split = CoresRun(workload="split_attention", params=params, cfg=TINY, seed=1).ensemble()
    same = [s for s in sizes if not s.startswith(("cores=", "buffers="))]
    alone = WORKLOADS["attention"].build(TINY, WORKLOADS["attention"].parse(same), 1)
    with VerilatedDevice(TINY, build_core(needed(TINY, alone.uses)).binary) as device:
        device.load(build_image(alone))
        context = device.run().outputs["context"]
    assert np.array_equal(run_cores(split.programs, TINY).results[0].outputs["y"], context)
    assert m["macs"] == alone.macs


def test_an_output_projection_has_the_same_bits_on_any_number_of_cores(tmp_path: Path) -> None:
    sizes = ("heads=4", "seq=20", "head=8", "kv_heads=2", "causal=true", "width=40")
    results: list[np.ndarray] = []
    for cores in (1, 2, 4):
        r = several("split_attention", tmp_path, *sizes, f"cores={cores}")
        assert r["match"] is True and r["end"] == "done" and not r["faults"]
        m = r["metrics"]
        assert m["forwarded_bytes"] == 20 * 4 * 8 * 2 * (cores - 1) // cores
        assert m["bytes_per_cycle"] <= m["bound_bytes_per_cycle"] and m["cosine"] > 1 - 1e-5
        params = parse_cores("split_attention", [*sizes, f"cores={cores}"])
        ensemble = CoresRun(workload="split_attention", params=params, cfg=TINY, seed=1).ensemble()
        results.append(run_cores(ensemble.programs, TINY).results[0].outputs["y"])
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def test_two_cores_are_nearly_twice_as_fast(tmp_path: Path) -> None:
    one, two = (several("split_attention", tmp_path, "seq=40", "head=16", f"cores={n}")["cycles"] for n in (1, 2))
    assert 1.7 * two < one < 2 * two


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = ["--config", "tiny", "--set", "gpsimd.vectors=false", "-p", "tiles=4", "--out", str(tmp_path)]
    assert main(["run", "forward", *settings]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "MATCH forward of 2 cores on tiny" in said and "bytes a cycle, at most 16 by" in said


def test_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = tmp_path / "delays.toml"
    sweep.write_text(
        'format = 1\nbase = "tiny"\n[[axis]]\nfield = "hbm.latency_ns"\nvalues = [25, 200]\n'
        '[[workload]]\nname = "ping_pong"\nparams = {rounds = 4, delay = [1, 24]}\n'
    )
    assert main(["explore", str(sweep), "--out", str(tmp_path / "out")]) == 0, capsys.readouterr().out
    table = (tmp_path / "out" / "table.csv").read_text().splitlines()
    assert len(table) == 5 and "metrics.signal_cycles" in table[0] and "threads" not in table[0].replace("p.", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["forward", "-p", "delay=0"], "delay must be at least 1, not 0"),
        (["forward", "-p", "threads=0"], "threads must be at least 1, not 0"),
        (["forward", "-p", "cores=0"], "cores must be at least 1, not 0"),
        (["ping_pong", "-p", "cores=3"], "ping_pong has no parameter 'cores'"),
        (["forward", "--config", "tiny", "-p", "columns=4096"], "does not fit the memories of tiny"),
        (["forward", "--check", "sample=3"], "forward is checked with golden or none, not 'sample=3'"),
        (["forward", "--waves", "x.fst"], "forward has no --waves"),
        (["forward", "--fast"], "forward has no --fast"),
        (["split_attention", "-p", "heads=3"], "3 heads are no multiple of 2 cores"),
        (["split_attention", "-p", "cores=17"], "cores must be at most 16, not 17"),
        (["split_attention", "--config", "tiny", "-p", "seq=4096"], "does not fit the memories of tiny"),
        (["split_attention", "-p", "heads=1048576", "-p", "seq=4096"], "the host holds at most 134217728"),
        (["remote", "-p", "direction=up"], "direction must be one of write, read, both, not 'up'"),
        (["remote", "-p", "add=fp32", "-p", "far=hbm"], "add=fp32 goes with direction=write or both, to the SBUF of"),
        (["remote", "--config", "full", "-p", "tiles=4096", "-p", "columns=4096"], "the host holds at most 134217728"),
        (["remote", "-p", "add=e4m3"], "add must be one of fp32, bf16, int32, not 'e4m3'"),
        (["ping_pong", "--array", "fast"], "native or structural, not 'fast'"),
    ],
)
def test_wrong_input_gets_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert main(["run", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delay_cycles": 0}, "a wire between cores takes 1 to 4096 cycles, not 0"),
        ({"threads": 0}, "at least 1 thread, not 0"),
        ({"cores": (0, 1, 2)}, r"core \(0, 0, 0, 2\) has no program: 3 cores, 2 programs"),
        ({"cores": ()}, "1 to 64 cores, not 0"),
        ({"cfg": load("small")}, "for another configuration"),
    ],
)
def test_wrong_calls_get_one_sentence(changes: dict[str, Any], says: str) -> None:
    programs = [Kernel(TINY, f"k{n}", core_place(n)).program() for n in range(2)]
    with pytest.raises((PlexusError, KernelError), match=says):
        run_cores(**{"programs": programs, "cfg": TINY} | changes)
