"""Energy: units of gates that work as the golden models do while toggles are counted; events of runs on the RTL; the
command, interrupted and twice at once."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from firmware.workloads import find_workload
from rtl.contract.activation_tables import table as function_table
from rtl.contract.config import load, named
from rtl.contract.isa import AluOp
from rtl.contract.kinds import Kind
from rtl.tensor.pe import PE
from rtl.tensor.unpack_lane import UnpackLane
from sim.energy.core import scalar_events, tensor_events, vector_events
from sim.energy.core.counts import events_of
from sim.energy.core.tensor_events import Element, tensor_units
from sim.energy.gates import Gates
from sim.energy.netlists import gates_of, made_of
from sim.energy.simulation import Simulation
from sim.energy.values import KINDS, Source
from sim.run.waves import Waves
from sim.systems.core.run import Run, run_workload
from sim.toolchain import ROOT, environment
from verif.checks.ram_rows import ram_rows
from verif.golden.activation import pre, through_table
from verif.golden.alu import alu
from verif.golden.exp import exp
from verif.golden.numeric import canonical, decode, fused

TINY = named("tiny")
PLAIN = load("tiny", ["tensor.mx=false", "tensor.sparsity=false"])
"""A PE that multiplies and adds: a quarter of the gates."""
Codes = NDArray[np.uint32]


def gates(component: Any) -> Gates:
    return gates_of(made_of(component, "unit"), tick=lambda: None, came=lambda name: None)


def codes(words: NDArray[np.uint64]) -> Codes:
    """Of [bits, words] the number of each stream."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little").astype(np.uint64)
    return (bits << np.arange(len(bits), dtype=np.uint64)[:, None]).sum(axis=0).astype(np.uint32)


class Recorded(Source):
    """Remembers what it gave, by format."""

    def __init__(self, kind: str, name: str, words: int = 1):
        super().__init__(kind, name, words)
        self.given: dict[str, list[NDArray[np.uint64]]] = {}

    def codes(self, fmt: str, spread: float = 1.0) -> NDArray[np.uint64]:
        found = super().codes(fmt, spread)
        self.given.setdefault(fmt, []).append(found)
        return found


@pytest.fixture(scope="module")
def pe() -> tuple[Gates, Gates]:
    return gates(PE(PLAIN)), gates(UnpackLane(PLAIN.tensor))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fmt", ["bf16", "fp16"])
def test_a_pe_of_gates_computes_while_it_is_counted(pe: tuple[Gates, Gates], kind: str, fmt: str) -> None:
    source = Recorded(kind, "pe", 2)
    sims = [Simulation(one, 2) for one in pe]
    element = Element(PLAIN, sims, source, Kind.ONE, fmt)
    element.prepare()  # the first number is the weight
    begin = len(source.given[fmt])
    sums: list[Codes] = []
    norths: list[Codes] = []
    for _ in range(12):
        element.pe.cycle(element.beat())
        norths.append(source.given["fp32"][-1].astype(np.uint32))
        sums.append(codes(sims[0].output("south")))
    weight, *_ = decode(source.given[fmt][0].astype(np.uint16), fmt)[None]
    for n in range(10):
        x = decode(source.given[fmt][begin + n].astype(np.uint16), fmt)
        want = canonical(fused(x, weight, norths[n].view(np.float32)))
        assert np.array_equal(sums[n + 2], want), f"beat {n}"


def test_what_is_zero_switches_less_and_what_stands_still_not_at_all(pe: tuple[Gates, Gates]) -> None:
    _, unit, _ = tensor_units(PLAIN)
    rows: dict[str, dict[str, float]] = {}
    sims = [Simulation(one) for one in pe]
    for event in (e for e in unit.events if e.name in ("beat one bf16", "beat one tf32", "load", "pass")):
        for kind in KINDS:
            for sim in sims:
                sim.restart()
            event.drive(sims, Source(kind, event.name))
            rows.setdefault(event.name, {})[kind] = sims[0].toggles.each
            before = sims[0].toggles.weighted
            for _ in range(5):
                sims[0].cycle({})  # what is on its way leaves
            sims[0].toggles.clear()
            sims[0].cycle({})
            assert before > 0 and sims[0].toggles.weighted == 0
    beat = rows["beat one bf16"]
    assert beat["zeros"] < 0.7 * beat["normal"] and beat["bits"] < 1.5 * beat["normal"]
    assert rows["load"]["normal"] < rows["pass"]["normal"] < beat["normal"] < rows["beat one tf32"]["normal"]


def test_a_pe_with_a_wrong_gate_is_seen(pe: tuple[Gates, Gates]) -> None:
    whole, unpack = pe
    n = next(n for n, cell in enumerate(whole.cells) if cell[0] == "XOR2")
    kind, pins, out = whole.cells[n]
    cells = [*whole.cells[:n], ("XNOR2", pins, out), *whole.cells[n + 1 :]]
    wrong = Gates(
        nets=whole.nets, inputs=whole.inputs, outputs=whole.outputs, cells=cells, registers=whole.registers,
        initial=whole.initial,
    )  # fmt: skip
    with pytest.raises(AssertionError, match="beat"):
        test_a_pe_of_gates_computes_while_it_is_counted((wrong, unpack), "normal", "bf16")


@pytest.mark.regress
@pytest.mark.parametrize(("work", "op"), [("add", AluOp.ADD), ("multiply", AluOp.MULTIPLY), ("compare", AluOp.MAX)])
def test_a_vector_lane_of_gates_computes(vector_lane: Gates, work: str, op: AluOp) -> None:
    x, a, out = vector_results(vector_lane, f"vector {work} x1")
    agree([alu(op, one, a) for one in x], out)


@pytest.mark.regress
def test_the_exp_of_a_vector_lane_of_gates(vector_lane: Gates) -> None:
    x, a, out = vector_results(vector_lane, "vector exp x1")
    agree([exp(one, a) for one in x], out)


@pytest.fixture(scope="module")
def vector_lane() -> Gates:
    return gates(vector_events.ClockedLane(1))


class Watched(Simulation):
    """Remembers outputs of each cycle."""

    def __init__(self, of: Gates, *ports: str):
        self.ports = ports
        self.seen: list[dict[str, Codes]] = []
        super().__init__(of)

    def cycle(self, inputs: Any, clocks: Any = None) -> None:
        super().cycle(inputs, clocks)
        self.seen.append({port: codes(self.output(port)[:32]) for port in self.ports})


def vector_results(of: Gates, name: str) -> tuple[list[Codes], Codes, list[Codes]]:
    """Elements, the column and what came out."""
    (unit,) = vector_events.vector_units(load("tiny", ["vector.exp_rate=1"]))
    (event,) = (event for event in unit.events if event.name == name)
    source = Recorded("normal", name)
    lane = Watched(of, "out", "a")
    event.drive([lane], source)
    words = source.given["fp32"][0::2]  # the lower half of each word
    return [word.astype(np.uint32) for word in words], lane.seen[-1]["a"], [seen["out"] for seen in lane.seen]


def agree(want: list[Codes], got: list[Codes]) -> None:
    """Of the last cycles, whatever the latency is: one and no other."""
    late = [n for n in range(12) if all(np.array_equal(w, g) for w, g in zip(want[-6 - n :], got[-6:], strict=False))]
    assert len(late) == 1, f"results agree with operands of {late} cycles before"


@pytest.mark.regress
def test_a_scalar_lane_of_gates_computes() -> None:
    unit, *_ = scalar_events.scalar_units(TINY)
    of = gates(scalar_events.ClockedLane())
    for event in unit.events:
        source = Recorded("normal", event.name)
        lane = Watched(of, "out")
        event.drive([lane], source)
        a, b, *x = (one.astype(np.uint32) for one in source.given["fp32"])
        between = [pre(one, a, b) for one in x]
        if event.name == "scalar table":
            want = [through_table(one, function_table("gelu")) for one in between]
        else:
            want = [np.where(one >> 31 == 1, np.uint32(0), one) for one in between]
        found = [seen["out"] for seen in lane.seen]
        late = [n for n in range(10, 20) if all(np.array_equal(w, g) for w, g in zip(want[-4 - n :], found[-4:]))]
        assert len(late) == 1, event.name


def run(workload: str, params: dict[str, Any], folder: Path, waves: Waves | None = None) -> dict[str, Any]:
    asked = Run(workload=workload, params=params, cfg=TINY, waves=waves, out=folder, trace=False, check="none")
    return run_workload(asked, Console(quiet=True))


@pytest.mark.sim
@pytest.mark.parametrize(
    ("workload", "params"), [("gemm", {"m": 20, "k": 24, "n": 40}), ("ffn", {"tokens": 8}), ("softmax", {"rows": 16})]
)
def test_events_agree_with_the_counters_of_the_core(workload: str, params: dict[str, Any], tmp_path: Path) -> None:
    """The hardware counts beats; events are counted in the program."""
    report = run(workload, params, tmp_path)
    events, engines = report["events"], report["engines"]
    assert sum(events["psum_adds"].values()) == engines["tensor"]["busy"] * TINY.partitions
    busy = engines["scalar"]["parts"]["busy"].get("activation", 0)  # beside words of a table; none of these has pairs
    scalar_cycles = busy * TINY.scalar.clock_mhz // TINY.tensor.clock_mhz
    assert sum(events["scalar_elements"].values()) == scalar_cycles * TINY.partitions
    vector_cycles = engines["vector"]["busy"] * TINY.vector.clock_mhz // TINY.tensor.clock_mhz
    beats = sum(events["vector_beats"].values()) // TINY.partitions
    assert beats <= vector_cycles <= 2 * beats + 40  # two sources in one memory take two; columns are read, too
    assert 0 <= report["hbm_bytes_read"] + report["hbm_bytes_written"] - events["dma_bytes"]


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.regress
@pytest.mark.parametrize(
    ("workload", "params"),
    [
        ("gemm", {"m": 20, "k": 40, "n": 70, "dtype": "fp32"}),
        ("gemm", {"m": 16, "k": 64, "n": 24, "dtype": "mxfp8"}),
        ("gemm", {"m": 20, "k": 64, "n": 24, "sparsity": "2:4"}),
        ("attention", {"seq": 40, "head": 12, "heads": 2, "causal": True}),
        ("layernorm", {"rows": 11, "columns": 40}),
        ("rope", {}),
        ("transpose", {}),
        ("dma", {"rows": 20, "row_bytes": 77, "direction": "both"}),
    ],
)
def test_rows_of_ram_are_those_in_the_waves(workload: str, params: dict[str, Any], tmp_path: Path) -> None:
    waves = tmp_path / "w.vcd"
    events = run(workload, params, tmp_path, Waves(path=waves))["events"]
    found = ram_rows(waves)
    for memory in ("sbuf", "psum"):
        for way, group in enumerate((f"{memory}_rows_read", f"{memory}_rows_written")):
            want = sum(counts[way] for name, counts in found.items() if name.startswith(f"{memory}/"))
            counted = sum(events[group].values())
            refused = want // 100 if workload == "attention" else 0  # read in one memory, and refused by the other
            assert counted <= want <= counted + refused, group


COMMAND = """
import signal
import sys

# A job that a shell put in the background ignores interrupts, and its children do: a person's does not.
signal.signal(signal.SIGINT, signal.default_int_handler)
from sim.energy import table
from sim.energy.anchor_events import anchor_units
table.units_of_core = lambda cfg: anchor_units()
table.registers_of = lambda cfg, step: {}
from sim.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def command(tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    """Words and environment of a table of two units."""
    words = [sys.executable, "-c", COMMAND, "energy", "tiny", "--out", str(tmp_path / "out")]
    return words, {**environment(), "PLEXUS_BUILD": str(tmp_path)}


def test_an_interrupt_leaves_nothing_half_and_two_at_once_make_one_result(
    tmp_path: Path, command: tuple[list[str], dict[str, str]]
) -> None:
    words, own = command
    process = subprocess.Popen(words, cwd=ROOT, env=own, stderr=subprocess.PIPE, text=True)
    kept = tmp_path / "energy" / "toggles"
    for _ in range(3600):
        if (
            list(kept.glob("*.json"))
            and list((tmp_path / "area").glob(".unit-*/unit.ys"))
            or process.poll() is not None
        ):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.strip().splitlines()[-1].startswith("plexus: interrupted")
    assert not list((tmp_path / "area").glob(".unit-*")) and not (tmp_path / "out").exists()
    (first,) = kept.iterdir()
    assert json.loads(first.read_text())[0]["event"] == "fp32 add"
    twice = [subprocess.Popen(words, cwd=ROOT, env=own, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [one.communicate(timeout=120)[0] for one in twice]
    assert [one.returncode for one in twice] == [0, 0] and told[0] == told[1] and "fp32 multiply" in told[0]
    assert len(list(kept.iterdir())) == 2 and first.exists()
    report = json.loads((tmp_path / "out" / "energy.json").read_text())
    assert [row["event"] for row in report["events"]] == ["fp32 add", "fp32 multiply"]
    assert all(0 < row["zeros"] < row["normal"] for row in report["events"])


def test_events_of_all_kinds_of_a_core_have_a_weight() -> None:
    """What counts.events_of may name is measured, or has a stand-in that is."""
    known = {event.name for unit in tensor_units(TINY) for event in unit.events}
    for dtype in ("fp32", "mxfp8", "fp16"):
        events = events_of(find_workload("gemm").build(TINY, {"m": 8, "k": 32, "n": 8, "dtype": dtype}, 0))
        assert {f"beat {name}" for name in events["pe_beats"]} <= known
    assert {tensor_events.beat_name(Kind.PAIR, "e5m2"), tensor_events.beat_name(Kind.SPARSE, "fp16")} <= known
