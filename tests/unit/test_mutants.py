"""Mutants: how they are read, what a score counts, what the plan may say, and the page made from it."""

from pathlib import Path

import pytest

from sim.errors import PlexusError
from verif.mutants.__main__ import main
from verif.mutants.measure import Measured, Tried
from verif.mutants.mutant import Mutant, parse
from verif.mutants.plan import PAGE, Score, page, read_scores, score_of, survivors, waivers
from verif.mutants.units import SAMPLE, UNMEASURED, units

NETLIST = r"""
module \top
  cell $and $28
    connect \A \i__valid
  end
  cell $dff $47
  end
  cell \plexus_ram \ram.storage
  end
  cell \plexus_clock_gate \gate
  end
end
"""
LISTED = r"""
mutate -mode inv -module top -cell $28 -port Y -portbit 0 -wire enter -wirebit 2 -src rtl/a.py:54|rtl/a.py:60
mutate -mode const0 -module top -cell $47 -port CLK -portbit 0 -src rtl/a.py:48
mutate -mode const0 -module top -cell $47 -port Q -portbit 1
mutate -mode const1 -module top -cell $47 -port D -portbit 1
mutate -mode cnot1 -module top -cell ram.storage -port rdata -portbit 6 -ctrlbit 3 -wire \$7 -wirebit 6
mutate -mode const0 -module top -cell gate -port gated -portbit 0
mutate -mode const1 -module top -cell gate -port enable -portbit 0
"""
ABLE = Mutant("inv", "$1", "$and", "Y", 0, None, "", ())


def measured(*fates: str) -> Measured:
    return Measured("unit", tuple(Tried(n, ABLE, fate) for n, fate in enumerate(fates, 1)), 1.0)


def test_a_list_of_yosys_without_what_a_clock_must_not_meet() -> None:
    found = parse(LISTED.strip(), NETLIST)
    assert [str(m) for m in found] == [
        "inv Y[0] of $and $28, enter[2], rtl/a.py:54, rtl/a.py:60",
        "const1 D[1] of $dff $47",
        "cnot1 rdata[6] by bit 3 of plexus_ram ram.storage, $7[6]",
        "const1 enable[0] of plexus_clock_gate gate",
    ]
    assert found[2].command("top", "plant", 3) == (
        "mutate -ctrl plant 8 3 -mode cnot1 -module top -cell ram.storage -port rdata -portbit 6 -ctrlbit 3"
    )
    assert [Mutant.of(m.as_dict()) for m in found] == found


def test_a_score_leaves_out_what_nobody_can_notice() -> None:
    result = measured("failed", "hung", "crashed", "equivalent", "survived")
    assert score_of(result, {}) == Score(5, 3, 1, 0, 1)
    assert score_of(result, {}).percent == 75.0
    waived = {("unit", str(ABLE)): "why"}
    assert score_of(result, waived) == Score(5, 3, 1, 1, 0)
    assert score_of(result, waived).percent == 100.0
    assert not survivors(result, waived)
    assert [t.number for t in survivors(result, {("other", str(ABLE)): "why"})] == [5]


def test_a_score_is_never_rounded_up() -> None:
    assert Score(1000, 999, 0, 0, 1).percent == 99.9
    assert Score(3000, 2999, 0, 0, 1).percent == 99.9


@pytest.mark.parametrize("row", ['unit = "a"\nmutant = "b"', 'unit = "a"\nmutant = "b"\nreason = ""'])
def test_a_waiver_without_a_reason_is_refused(row: str, tmp_path: Path) -> None:
    file = tmp_path / "mutants.toml"
    file.write_text(f"[[waived]]\n{row}\n")
    with pytest.raises(PlexusError, match="a waiver has a unit, a mutant and a reason"):
        waivers(file)


def test_the_page_is_made_from_the_plan() -> None:
    assert PAGE.read_text() == page(read_scores(), [u.top for u in units()], UNMEASURED), "make mutants WRITE=1 does it"


def test_scores_and_waivers_are_of_units() -> None:
    known = {unit.top for unit in units()}
    assert len(known) == len(units()) and not known & set(UNMEASURED)
    assert set(read_scores()) <= known and {unit for unit, _ in waivers()} <= known
    assert set(SAMPLE) <= set(read_scores())
    for name, score in read_scores().items():
        assert score.killed + score.equivalent + score.waived + score.survived == score.mutants, name


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no_such"], "there is no unit 'no_such'; there are clock_gate, "),
        (["ram"], "ram is not measured: "),
        (["fifo", "--mutants", "256"], "a model has 1 to 255 mutants, not 256"),
        (["fifo", "--seed", "2", "--write"], "scores are of 40 mutants of seed 1"),
    ],
)
def test_wrong_use_is_one_sentence(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr().err
    assert says in told and told.count("\n") == 1
