"""From Verilator's counts to rows of units: reader, Verilog, constants, merge, judgement, page."""

import gzip
import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from rtl.base.fifo import Fifo
from rtl.emit.verilog import emit
from sim.build.coverage import DATA, PLACES, uncounted
from sim.errors import PlexusError
from sim.toolchain import ROOT, activate
from verif.checks.code_coverage.__main__ import gather
from verif.checks.code_coverage.constants import constant_bits
from verif.checks.code_coverage.data import Point, add_up
from verif.checks.code_coverage.holes import Row, judge, reasons_of, rows_of
from verif.checks.code_coverage.page import page
from verif.checks.code_coverage.text import modules_of
from verif.checks.code_coverage.units import percent_floor

TEXT = r"""
module top(clk, i);
  input clk;
  wire clk;
  input [1:0] i;
  wire [1:0] i;
  wire \$1 ;
  reg [3:0] sum = 4'h0;
  wire [3:0] padded;
  wire [1:0] twice;
  wire \twice$2 ;
  assign padded = { 2'h0, i };
  assign twice = {2{ padded[3] }};
  assign \$1  = i == 2'h3;
  always @(posedge clk) begin
    if (\$1 ) begin
      sum <= padded;
    end else begin
      sum <= 4'h0;
    end
  end
  \top.low  low (
    .given(twice),
    .i(i),
    .shown(\twice$2 )
  );
endmodule
module \top.low (given, i, shown);
  input [1:0] given;
  wire [1:0] given;
  input [1:0] i;
  wire [1:0] i;
  output shown;
  wire shown;
  assign shown = given[1];
endmodule
"""
PLACES_OF_TEXT = {
    "top": {"at": "rtl/a.py:1", "names": {"sum": "rtl/a.py:3", "\\$1": "rtl/a.py:9"}},
    "\\top.low": {"at": "rtl/b.py:5", "names": {}},
}


def line_of(text: str, occurrence: int = 0) -> int:
    """The number of a line of TEXT."""
    return [n for n, line in enumerate(TEXT.split("\n"), 1) if line.strip() == text][occurrence]


def entry(line: int, what: str, hits: int, *, kind: str = "toggle", column: int = 1, h: str = "top") -> str:
    fields = {"f": "top.v", "l": line, "n": column, "t": kind, "page": f"v_{kind}/top", "o": what, "h": h}
    return "C '" + "".join(f"\1{key}\2{value}" for key, value in fields.items()) + f"' {hits}\n"


def leave(folder: Path, *entries: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / DATA, "wt") as file:
        file.write("# SystemC::Coverage-3\n" + "".join(entries))
    return folder / DATA


def test_hits_of_runs_and_of_instances_add_up_and_points_without_hits_stay(tmp_path: Path) -> None:
    one = leave(tmp_path / "1", entry(7, "a[0]:0->1", 2, h="top.x"), entry(7, "a[0]:0->1", 3, h="top.y"))
    two = leave(tmp_path / "2", entry(7, "a[0]:0->1", 4, h="top.x"), entry(8, "if", 0, kind="branch", column=5))
    assert add_up([one, two]) == Counter(
        {Point("top.v", 7, 1, "top", True, "a[0]:0->1"): 9, Point("top.v", 8, 5, "top", False, "if"): 0}
    )
    assert len(add_up([two])) == 2


def test_what_is_no_coverage_is_refused(tmp_path: Path) -> None:
    with gzip.open(tmp_path / DATA, "wt") as file:
        file.write("timestamp\n")
    with pytest.raises(PlexusError, match="does not begin with"):
        add_up([tmp_path / DATA])


def test_lines_of_verilog_are_signals_and_branches_with_places() -> None:
    top, low = modules_of(TEXT, PLACES_OF_TEXT)
    assert (top.at, low.at) == ("rtl/a.py:1", "rtl/b.py:5")
    assert top.nets[line_of("reg [3:0] sum = 4'h0;")].place == "rtl/a.py:3"
    assert sorted(net.name for net in low.nets.values()) == ["given", "i", "shown"], "a port is declared in two lines"
    branch = top.branches[line_of(r"if (\$1 ) begin")]
    assert (branch.of, branch.path[-1]) == ("sum", "if (rtl/a.py:9)")
    assert top.branches[line_of("end else begin")].path[-1] == "end else"


def test_a_module_of_a_library_belongs_to_the_unit_around_it() -> None:
    places = {"top": {"at": "rtl/a.py:1", "names": {}}, "\\top.low": {"at": "", "names": {}}}
    assert [module.at for module in modules_of(TEXT, places)] == ["rtl/a.py:1", "rtl/a.py:1"]


def test_constants_go_through_rows_repetitions_and_ports() -> None:
    bits = constant_bits(modules_of(TEXT, {}))
    constant = {(module.lstrip("\\"), name.lstrip("\\"), bit) for module, name, bit in bits}
    assert constant == {
        *(("top", name, bit) for name in ("padded", "sum") for bit in (2, 3)),
        *(("top", "twice", bit) for bit in (0, 1)),
        *(("top.low", "given", bit) for bit in (0, 1)),
        ("top.low", "shown", 0),
        ("top", "twice$2", 0),
    }


def test_what_nobody_wrote_is_not_counted() -> None:
    assert list(uncounted(TEXT)) == [(line_of(r"wire \$1 ;"),) * 2]


def test_the_text_with_places_is_the_text_without() -> None:
    activate()
    located = emit(Fifo(4, 2), "top", located=True)
    assert located.text == emit(Fifo(4, 2), "top").text and 'src = "' not in located.text
    place = located.places["top"]
    assert place.at.startswith("rtl/base/fifo.py:") and not emit(Fifo(4, 2), "top").places
    lines = (ROOT / "rtl" / "base" / "fifo.py").read_text().splitlines()
    for name in ("enter", "leave", "write"):
        file, _, number = place.names[name].partition(":")
        assert file == "rtl/base/fifo.py" and re.search(rf"\b{name} = Signal\(", lines[int(number) - 1])


def a_model(root: Path, key: str, *runs: list[str], plant: int = 0) -> None:
    folder = root / "unit" / key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "top.v").write_text(TEXT)
    (folder / PLACES).write_text(json.dumps(PLACES_OF_TEXT))
    for number, entries in enumerate(runs):
        run = leave(folder / f"run-bench-s{number}-p{plant}", *entries).parent
        (run / "manifest.json").write_text(json.dumps({"plant": plant}))


SUM = line_of("reg [3:0] sum = 4'h0;")
CHOICE = line_of(r"if (\$1 ) begin")


def some(rise: int, fall: int, taken: int, other: int) -> list[str]:
    return [
        entry(SUM, "sum[1]:0->1", rise),
        entry(SUM, "sum[1]:1->0", fall),
        entry(line_of("wire [3:0] padded;"), "padded[3]:0->1", 0),
        entry(line_of("input [1:0] i;"), "i[0]:0->1", 5),
        entry(line_of("input [1:0] i;", 1), "i[0]:0->1", 5),
        entry(line_of("input clk;"), "clk:0->1", 9),
        entry(CHOICE, "if", taken, kind="branch"),
        entry(CHOICE, "else", other, kind="branch", column=2),
        entry(line_of("always @(posedge clk) begin"), "block", 9, kind="line"),
    ]


def test_models_and_runs_merge_and_faults_do_not(tmp_path: Path) -> None:
    a_model(tmp_path, "one", some(1, 0, 3, 0), some(2, 0, 1, 0))
    a_model(tmp_path, "two", some(0, 0, 0, 7))
    a_model(tmp_path, "two", some(1, 1, 1, 1), plant=3)
    low, top = sorted(rows_of(gather(tmp_path)), key=lambda row: row.unit, reverse=True)
    assert (top.unit, top.hit, top.of) == ("rtl/a.py", {"line": 2, "toggle": 1}, {"line": 2, "toggle": 2})
    assert top.holes == [("rtl/a.py:3", "sum: bits 1 never fall")]
    assert top.left_out == {"below": 2, "clock": 1, "constant": 7, "expression": 1, "runs": 1}
    assert (low.unit, low.hit["toggle"], low.of) == ("rtl/b.py", 1, {"line": 0, "toggle": 1})


def test_frames_and_tops_of_benches_are_no_units(tmp_path: Path) -> None:
    a_model(tmp_path, "one", some(1, 0, 3, 0))
    for at in ("rtl/base/placed.py:145", "verif/benches/base/gate_top.py:9"):
        places = {**PLACES_OF_TEXT, "top": {"at": at, "names": {}}}
        (tmp_path / "unit" / "one" / PLACES).write_text(json.dumps(places))
        assert [row.unit for row in rows_of(gather(tmp_path))] == ["rtl/b.py"]


def test_runs_before_the_stamp_do_not_count(tmp_path: Path) -> None:
    a_model(tmp_path, "one", some(1, 1, 1, 1))
    made = next(tmp_path.rglob(DATA)).stat().st_mtime
    assert gather(tmp_path, made) and not gather(tmp_path, made + 1)


@pytest.mark.parametrize(
    ("hit", "of", "percent"), [(1999, 2000, 99.9), (2000, 2000, 100.0), (0, 3, 0.0), (2, 3, 66.6), (0, 0, 100.0)]
)
def test_percentages_are_rounded_down(hit: int, of: int, percent: float) -> None:
    assert percent_floor(hit, of) == percent


def row(name: str, line: int, toggle: int) -> Row:
    return Row(name, {"line": line, "toggle": toggle}, {"line": 1000, "toggle": 1000}, [("rtl/x.py:3", "a < b")], {})


def test_a_hole_needs_a_reason_and_a_reason_a_hole() -> None:
    rows = [row("rtl/a.py", 899, 900), row("rtl/b.py", 900, 899), row("rtl/c.py", 1000, 1000)]
    assert judge(rows, [], {"rtl/a.py": {"line": "x"}, "rtl/b.py": {"toggle": "x"}}) == []
    assert judge(rows, [], {"rtl/b.py": {"toggle": "x"}}) == [
        "rtl/a.py: line coverage is 89.9 % (899 of 1000), and no reason is given"
    ]
    (late,) = judge(rows[1:], [], {"rtl/b.py": {"toggle": "x"}, "rtl/c.py": {"line": "x"}})
    assert late == "rtl/c.py: line coverage is 100.0 % (1000 of 1000), so the reason given is out of date"


def test_a_unit_in_no_model_needs_a_reason_if_all_ran() -> None:
    assert judge([], ["rtl/a.py"], {"rtl/a.py": {"unmet": "x"}}) == []
    assert judge([], ["rtl/a.py"], {}) == ["rtl/a.py: no bench has it in its model"]
    assert judge([], ["rtl/a.py"], {}, part=True) == []
    assert judge([], [], {"rtl/a.py": {"line": "x"}}) == ["rtl/a.py: reasons are given for a unit that is not there"]
    (met,) = judge([row("rtl/a.py", 1000, 1000)], [], {"rtl/a.py": {"unmet": "x"}})
    assert met == "rtl/a.py is in a model now, so the reason why not is out of date"


def test_reasons_are_sentences_for_something(tmp_path: Path) -> None:
    file = tmp_path / "coverage.toml"
    for text, wrong in (('line = "later"', "is a sentence"), ('lines = "a b c d"', "a reason is for line")):
        file.write_text(f'[unit."rtl/a.py"]\n{text}\n')
        with pytest.raises(PlexusError, match=wrong):
            reasons_of(file)


def test_reasons_name_files() -> None:
    reasons = reasons_of(ROOT / "verif" / "plan" / "coverage.toml")
    assert not [name for name in reasons if not (ROOT / name).is_file()]


def test_the_page_stands_alone_and_says_all() -> None:
    shown = page(
        [row("rtl/a.py", 500, 1000)], {"rtl/a.py": {"line": "A < B"}}, ["rtl/z.py"], {"base.fifo": {"full": 0}}, []
    )
    for text in ("rtl/a.py", "50.0", "500/1000", "A &lt; B", "a &lt; b", "rtl/z.py", "base.fifo", "0 of 1", "full"):
        assert text in shown
    assert not re.search(r"(src|href)=|https?:|a < b", shown)


def test_places_are_kept_as_json() -> None:
    activate()
    places = emit(Fifo(4, 2), "top", located=True).places
    assert json.loads(json.dumps({name: asdict(place) for name, place in places.items()}))["top"]["names"]


CODES = r"""
module top(i, cause, kept, mixed, wide);
  input [1:0] i;
  wire [1:0] i;
  output [3:0] cause;
  reg [3:0] cause = 4'h0;
  output [1:0] kept;
  reg [1:0] kept = 2'h1;
  output [1:0] mixed;
  wire [1:0] mixed;
  output [2:0] wide;
  wire [2:0] wide;
  reg [1:0] \$2 ;
  wire \$3 ;
  assign mixed = i[0] ? 2'h2 : 2'h3;
  assign wide = i + 1'h1;
  assign \$3  = & i;
  always @(posedge clk) begin
    if (i[0]) begin
      cause <= 4'h2;
    end else if (\$3 ) begin
      cause[0] <= 1'h1;
    end
  end
  always @(posedge clk)
    kept <= \$2 ;
  always @* begin
    \$2  = kept;
    if (i[1]) begin
      \$2 [1] = \$3 ;
    end
    if (i[0]) begin
      \$2  = 2'hx;
    end
  end
endmodule
"""


def test_a_bit_that_only_ever_gets_one_constant_is_one() -> None:
    bits = {(name, bit) for _, name, bit in constant_bits(modules_of(CODES, {})) if "$" not in name}
    assert bits == {("cause", 2), ("cause", 3), ("kept", 0), ("mixed", 1)}


NAMES = r"""
module top(i);
  input [1:0] i;
  wire [1:0] i;
  reg [3:0] \words{n}  [1:0];
  reg [3:0] sum = 4'h0;
  always @(posedge {domain}clk) begin
    if (\taken{n} ) begin
      if ({domain}rst) begin
        sum <= 4'h0;
      end else if (v{n}1) begin
        sum <= 4'h1;
      end
    end
  end
endmodule
"""


def test_a_branch_is_the_same_whatever_its_nets_and_its_domain_are_called() -> None:
    paths = []
    for n, domain in ((3, ""), (68, "tensor_")):
        text = NAMES.replace("\\words{n}", f"\\words${n}").replace("\\taken{n}", f"\\taken${n}")
        (module,) = modules_of(text.replace("{n}", str(n)).replace("{domain}", domain), {})
        paths.append([branch.path for branch in module.branches.values()])
        (words,) = [net for net in module.nets.values() if net.name.startswith("\\words")]
        assert words.array
    assert paths[0] == paths[1]
    assert paths[0][-1][1:] == ("if (taken)", "end else if (expression)")
