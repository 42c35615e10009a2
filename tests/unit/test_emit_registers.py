"""The rewritten registers are the registers that were there, proved by Yosys."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.back import verilog
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import RoundRobin
from rtl.base.clock_ratio import ClockRatio
from rtl.base.credit import Credit
from rtl.base.fifo import Fifo
from rtl.emit.registers import merge_registers

ROOT = Path(__file__).resolve().parents[2]


class Corners(wiring.Component):
    """Registers with parts written, without reset, that hold themselves, seen by others, of a second clock."""

    a: In(8)
    b: In(8)
    go: In(2)
    clk2: In(1)
    q: Out(8, init=0x5A)
    parts: Out(8)
    kept: Out(8)
    other: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.second = second = ClockDomain(reset_less=True)
        m.d.comb += second.clk.eq(self.clk2)
        with m.If(self.go[0]):
            m.d.sync += self.q.eq(self.a)
        with m.Elif(self.go[1]):
            m.d.sync += self.q.eq(self.q ^ self.b)
        with m.Switch(self.a[:2]):
            with m.Case(0):
                m.d.sync += self.parts[1:3].eq(self.b)
            with m.Case(1, 2):
                m.d.sync += [self.parts[4].eq(1), self.parts.bit_select(self.b[:3], 2).eq(3)]
        free = Signal(8, reset_less=True)
        with m.If(self.go.all()):
            m.d.sync += free.eq(self.parts + 1)
        with m.If(self.b[0]):
            m.d.sync += self.kept.eq(free)
        with m.If(self.b[1]):
            m.d.sync += self.kept.eq(self.kept)  # takes the write above back
        with m.If(self.go[1]):
            m.d.second += self.other.eq(self.a)
        return m


@pytest.mark.parametrize(
    "component",
    [Corners(), Fifo(6, 3), RoundRobin(5), Credit(9, 3), ClockRatio(2, 5)],
    ids=lambda c: type(c).__name__,
)
def test_registers_stay_what_they_were(component: wiring.Component, tmp_path: Path, monkeypatch) -> None:
    tools = [str(ROOT / "tools"), str(Path(sys.executable).parent)]
    monkeypatch.setenv("PATH", os.pathsep.join([*tools, os.environ["PATH"]]))
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "system")
    before = verilog.convert(component, name="top", emit_src=False, strip_internal_attrs=True)
    after = merge_registers(before)
    assert after.count("always @*") < before.count("always @*")
    (tmp_path / "before.v").write_text(before)
    (tmp_path / "after.v").write_text(after)
    script = """
        read_verilog before.v; hierarchy -top top; proc; flatten; opt_clean; rename top gold; design -stash before
        read_verilog after.v; hierarchy -top top; proc; flatten; opt_clean; rename top gate; design -stash after
        design -copy-from before gold; design -copy-from after gate
        equiv_make gold gate both; hierarchy -top both; equiv_simple -undef; equiv_induct -undef
        equiv_status -assert
    """
    done = subprocess.run(["yosys", "-p", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
