"""What is compared without signs stays so in Verilog, whatever its operands are: proved by Yosys."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.emit.yosys import to_verilog

ROOT = Path(__file__).resolve().parents[2]


class Signs(wiring.Component):
    """Two signed inputs as numbers with and without signs."""

    a: In(signed(5))
    b: In(signed(5))
    less: Out(1)
    less_unsigned: Out(1)
    not_less_unsigned: Out(1)
    longer: Out(signed(9))
    longer_unsigned: Out(9)
    right: Out(signed(5))
    right_unsigned: Out(5)
    rest: Out(5)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = self.a.as_unsigned(), self.b.as_unsigned()
        m.d.comb += [
            self.less.eq(self.a < self.b),
            self.less_unsigned.eq(a < b),
            self.not_less_unsigned.eq(a >= b),
            self.longer.eq(self.a + self.b),
            self.longer_unsigned.eq(a + b),
            self.right.eq(self.a >> b[:3]),
            self.right_unsigned.eq(a >> b[:3]),
            self.rest.eq(a % b),
        ]
        return m


def test_an_unsigned_comparison_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [str(ROOT / "tools"), str(Path(sys.executable).parent)]
    monkeypatch.setenv("PATH", os.pathsep.join([*tools, os.environ["PATH"]]))
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "system")
    netlist = rtlil.convert(Signs(), name="top", emit_src=False)
    (tmp_path / "before.il").write_text(netlist)
    (tmp_path / "after.v").write_text(to_verilog(netlist))
    script = """
        read_rtlil before.il; hierarchy -top top; proc; flatten; opt_clean; rename top gold; design -stash before
        read_verilog after.v; hierarchy -top top; proc; flatten; opt_clean; rename top gate; design -stash after
        design -copy-from before gold; design -copy-from after gate
        miter -equiv -make_outputs gold gate both; hierarchy -top both; flatten; sat -verify -prove trigger 0 both
    """
    done = subprocess.run(["yosys", "-p", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
