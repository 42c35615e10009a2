"""The proof runner: it proves what holds, refuses what does not, and says so in its exit code."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cover, Module, Signal
from amaranth.lib import wiring

from rtl.base.fault import fault
from sim.toolchain import activate
from verif.formal import run
from verif.formal.proof import Proof, without_reset


class Counter(wiring.Component):
    """Counts to 5 and starts again; its fault lets it run on."""

    def __init__(self, *, limit: int = 5, cover: int = 5):
        self.limit = limit
        self.cover = cover
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        without_reset(m)
        count = Signal(4)
        with m.If(AnySeq(1)):
            m.d.sync += count.eq(count + 1)
            with m.If((count == 5) & ~fault("the counter runs on")):
                m.d.sync += count.eq(0)
        m.d.comb += [Assert(count <= self.limit), Cover(count == self.cover)]
        return m


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # activate changes it
    activate()
    return tmp_path


def outcomes(**changes) -> dict[str, run.Outcome]:
    proof = Proof(
        **{
            "name": "counter",
            "make": Counter,
            "depth": 3,
            "cover_depth": 8,
            "faults": ("the counter runs on",),
            **changes,
        }
    )
    return {o.task: o for o in run.run_proof(proof)}


def test_proves_and_finds_the_fault() -> None:
    assert {task: o.ok for task, o in outcomes().items()} == {
        "prove": True,
        "cover": True,
        "fault: the counter runs on": True,
    }


def test_goes_through_all_states() -> None:
    good = outcomes(states=True)["states"]
    assert good.ok and good.detail.startswith("12 states") and good.detail.endswith(" 5 cycles")
    bad = outcomes(states=True, make=lambda: Counter(limit=4))["states"]
    assert not bad.ok


def test_a_false_assertion_an_unreached_cover_and_a_hidden_fault_are_told() -> None:
    bad = outcomes(make=lambda: Counter(limit=4, cover=9), depth=8)
    assert [o.ok for o in bad.values()] == [False, False, True]  # the fault fails, if for another reason
    assert "FAIL, expected PASS" in bad["prove"].detail
    hidden = outcomes(make=lambda: Counter(limit=15))
    assert not hidden["fault: the counter runs on"].ok
    assert "PASS, expected FAIL" in hidden["fault: the counter runs on"].detail
    unknown = outcomes(faults=("the counter stands still",))["fault: the counter stands still"]
    assert not unknown.ok
    assert "no unit has the fault 'the counter stands still'; there are: the counter runs on" in unknown.detail


def test_an_unknown_name_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["nothing"]) == 2
    assert capsys.readouterr().err.startswith("there is no proof 'nothing'; there are")


def test_leaves_junit_and_an_exit_code(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proofs = {"counter": Proof(name="counter", make=lambda: Counter(limit=4), depth=3, cover_depth=8)}
    monkeypatch.setattr(run, "discover", lambda: proofs)
    assert run.main([]) == 1
    suite = ElementTree.parse(own_folder / "formal.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    told = capsys.readouterr()
    assert "NO" in told.out
    assert re.search(r"^\w+: \d+\.\d s$", told.err, re.M), "nobody says which proof is through"


def test_every_proof_of_the_house_plants_faults_or_has_none_to_plant() -> None:
    proofs = run.discover()
    assert {"fifo", "ram_fifo", "round_robin", "sbuf_arbiter"} <= set(proofs)
    assert all(p.faults for name, p in proofs.items() if name != "wake")
