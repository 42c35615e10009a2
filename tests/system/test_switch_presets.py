"""The large switches with all their ports: their Verilog is written and Verilator takes it."""

from pathlib import Path

import pytest

from rtl.contract.switch_config import SWITCHES
from sim.build.lint import lint, lint_text, without_bodies
from sim.build.step import BuildError
from verif.checks.switch_presets import PRESETS

BLOCK = """module block(a, y);
  input a;
  wire a;
  output y;
  wire y;
  assign y = {};
endmodule
"""
WHOLE = """module top(a, y);
  input [1:0] a;
  output [1:0] y;
  block first(.a(a[0]), .y(y[0]));
  block second(.a(a[1]), .y(y[1]));
endmodule
"""
LOOP = "y ^ a"


@pytest.mark.regress
@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_converted_and_linted(name: str) -> None:
    done = lint("switch", SWITCHES[name])
    assert done.megabytes > 2
    assert lint("switch", SWITCHES[name]).cached


def test_only_ports_are_left_of_a_block() -> None:
    text = without_bodies(BLOCK.format("a") + WHOLE, ["block"])
    assert "assign" not in text and "input a;" in text and "output y;" in text and WHOLE in text


def test_what_is_wrong_is_found_in_blocks_and_around_them(tmp_path: Path) -> None:
    lint_text(BLOCK.format("~a") + WHOLE, "top", ["block"], [], tmp_path)
    with pytest.raises(BuildError, match="block"):
        lint_text(BLOCK.format(LOOP) + WHOLE, "top", ["block"], [], tmp_path)
    with pytest.raises(BuildError, match="top"):
        lint_text(BLOCK.format("a") + WHOLE.replace(".y(y[1])", ".z(y[1])"), "top", ["block"], [], tmp_path)
    assert not list(tmp_path.iterdir())
