"""A mutant that changes nothing is proved so from the gates that differ; one that changes something is not."""

import subprocess
from pathlib import Path

import pytest

from sim.toolchain import environment
from verif.mutants.equivalent import is_same_function
from verif.mutants.gates import GATES

UNIT = """
module {name} (input clk, input [3:0] a, input [3:0] b, output [2:0] y, output reg [1:0] q);
  wire [7:0] product = {product};
  wire [7:0] shifted = a << b;
  reg [1:0] forgotten = 0;
  initial q = {init};
  assign y = product[{low}+:3];
  always @(posedge clk) begin
    q <= {next};
    forgotten <= {forgotten};
  end
endmodule
"""
SAME = {"name": "changed", "product": "a + b", "init": "0", "low": "0", "next": "shifted[1:0]", "forgotten": "a[1:0]"}


def gates(changed: dict[str, str], folder: Path) -> str:
    text = UNIT.format(**SAME | {"name": "whole"}) + UNIT.format(**SAME | changed)
    (folder / "both.v").write_text(text)
    script = "; ".join(["read_verilog both.v", "proc", *GATES, "write_json gates.json"])
    words = [environment()["YOSYS"], "-q", "-p", script]
    subprocess.run(words, cwd=folder, env=environment(), check=True, capture_output=True)
    return (folder / "gates.json").read_text()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"product": "(a + b) ^ 8'h80"},
        {"product": "(a + b) | 8'h08"},
        {"forgotten": "~a[1:0]"},
        {"product": "{a[3:1], a[0] ^ b[0]} + {b[3:1], 1'b0} + (a[0] & b[0]) * 2"},
        {"product": "(a ^ 8'h40) + b"},
        {"next": "b[3:1] ? shifted[1:0] & {shifted[1] & ~b[3:1], 1'b1} : shifted[1:0]"},
    ],
    ids=["nothing", "bit 7 turned", "bit 3 set", "a register nobody reads", "by hand", "bit 6 turned", "is 0 there"],
)
def test_what_changes_nothing_is_proved(changed: dict[str, str], tmp_path: Path) -> None:
    assert is_same_function(gates(changed, tmp_path))


@pytest.mark.parametrize(
    "changed",
    [
        {"product": "(a + b) ^ 8'h04"},
        {"product": "a - b"},
        {"product": "a + b + (a == 7 && b == 9)"},
        {"low": "1"},
        {"init": "1"},
        {"next": "shifted[2:1]"},
        {"next": "{shifted[0], shifted[1]}"},
        {"next": "q"},
    ],
    ids=lambda changed: " ".join(changed.values()),
)
def test_what_changes_something_is_not(changed: dict[str, str], tmp_path: Path) -> None:
    assert not is_same_function(gates(changed, tmp_path))
