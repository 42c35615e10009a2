"""Loops over words: proved by Yosys equal to shifts, look-ups and choices of all words at once, written apart."""

from collections.abc import Callable
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.amaranth_internals import YosysError, find_yosys
from rtl.base.copies import CopiesLane
from rtl.base.pick import PickLane
from rtl.base.placed import Repetition
from rtl.emit.lanes import lanes_module
from rtl.tensor.fp4_map import Fp4Lane
from rtl.vector.bits import BitsLane
from sim.toolchain import activate

ROWS = 3


class WholePick(wiring.Component):
    """All words moved down together; what then comes from the next word is not the element's."""

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__({"enable": In(1), "place": In(3), "word": In(64 * ROWS), "out": Out(bits * ROWS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.Switch(self.place):
            for byte in range(8):
                moved = self.word >> 8 * byte
                with m.Case(byte):
                    for r in range(ROWS):
                        mine = moved[64 * r : 64 * r + 64] & (1 << 64 - 8 * byte) - 1
                        m.d.comb += self.out[self.bits * r : self.bits * (r + 1)].eq(Mux(self.enable, mine, 0))
        return m


class WholeFp4(wiring.Component):
    """Each code of each row looks into an array of sixteen entries."""

    enable: In(1)
    map: In(128)
    codes: In(64 * ROWS)
    out: Out(64 * ROWS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entries = Array(self.map[8 * c : 8 * c + 8] for c in range(16))
        m.d.comb += self.out.eq(self.codes)
        with m.If(self.enable):
            for r in range(ROWS):
                found = [entries[self.codes[64 * r + 4 * k : 64 * r + 4 * k + 4]] for k in range(4)]
                m.d.comb += self.out[64 * r : 64 * r + 64].eq(Cat(*found))
        return m


class WholeBits(wiring.Component):
    """Four copies of all words, one for each size of an element."""

    enable: In(1)
    place: In(3)
    bytes_log2: In(2)
    word: In(64 * ROWS)
    out: Out(64 * ROWS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        moved = Signal(64 * ROWS)
        with m.Switch(self.place):
            for byte in range(8):
                with m.Case(byte):
                    rows = [self.word[64 * r + 8 * byte : 64 * r + 64] for r in range(ROWS)]
                    m.d.comb += moved.eq(Cat(Cat(row, Const(0, 8 * byte)) for row in rows))
        for n in range(4):
            with m.If(self.enable & (self.bytes_log2 == n)):
                for r in range(ROWS):
                    for at in range(0, 64, 8 << n):
                        place = 64 * r + at
                        m.d.comb += self.out[place : place + (8 << n)].eq(moved[64 * r : 64 * r + (8 << n)])
        return m


class WholeCopies(wiring.Component):
    """Of each word two choices, between which copies of its lower half serve both sizes."""

    enable: In(1)
    bytes_log2: In(2)
    word: In(32 * ROWS)
    out: Out(64 * ROWS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = []
        for r in range(ROWS):
            x = self.word.word_select(r, 32)
            pair = Mux(self.bytes_log2 == 0, x[:8].replicate(2), x[:16])
            words.append(Cat(pair, Mux(self.bytes_log2 == 2, x[16:], pair)).replicate(2))
        m.d.comb += self.out.eq(Mux(self.enable, Cat(*words), 0))
        return m


class Mistaken(wiring.Component):
    """As it should be, but for one bit of the last word in one of very many cases."""

    def __init__(self, whole: wiring.Component):
        self.whole = whole
        super().__init__(whole.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.whole = whole = self.whole
        for name, member in self.signature.members.items():
            if member.flow == In:
                m.d.comb += getattr(whole, name).eq(getattr(self, name))
        words = getattr(self, "codes", None) if hasattr(self, "codes") else self.word
        m.d.comb += self.out.eq(whole.out ^ (self.enable & (words == (1 << len(words)) - 3)))
        return m


CASES: dict[str, tuple[Callable[[], wiring.Component], tuple[str, ...], Callable[[], wiring.Component]]] = {
    "pick": (lambda: PickLane(64), ("enable", "place"), lambda: WholePick(64)),
    "pick_half": (lambda: PickLane(32), ("enable", "place"), lambda: WholePick(32)),
    "fp4_map": (Fp4Lane, ("enable", "map"), WholeFp4),
    "copied_bits": (BitsLane, ("enable", "place", "bytes_log2"), WholeBits),
    "copies": (CopiesLane, ("enable", "bytes_log2"), WholeCopies),
}


def prove(folder: Path, lane: Callable[[], wiring.Component], shared: tuple[str, ...], whole: wiring.Component) -> None:
    """That the loop and the whole have equal outputs for all inputs."""
    activate()
    (folder / "gate.v").write_text(lanes_module("gate", Repetition(lane, ROWS, frozenset(shared), ())))
    (folder / "gold.il").write_text(rtlil.convert(whole, name="gold", emit_src=False))
    script = f"""
read_verilog -sv {folder}/gate.v
read_rtlil {folder}/gold.il
setattr -mod -unset top *
proc; flatten; opt -full
miter -equiv -flatten -make_assert gold gate both
hierarchy -top both
sat -prove-asserts -verify both
"""
    find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], script, ignore_warnings=True)


@pytest.mark.parametrize("name", CASES)
def test_the_loop_is_what_it_replaces(tmp_path: Path, name: str) -> None:
    lane, shared, whole = CASES[name]
    prove(tmp_path, lane, shared, whole())


@pytest.mark.parametrize("name", CASES)
def test_one_bit_in_one_case_is_noticed(tmp_path: Path, name: str) -> None:
    lane, shared, whole = CASES[name]
    with pytest.raises(YosysError, match="proof did fail"):
        prove(tmp_path, lane, shared, Mistaken(whole()))
