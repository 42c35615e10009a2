"""A row of FP32 adders with the rounding of their sums, of gates."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Placed
from rtl.numeric.fp32.add_pipelined import Fp32AddPipelined
from rtl.numeric.fp32.bf16_round import Bf16Round

__all__ = ["Fp32AddRow", "row_ports"]


def row_ports(lanes: int) -> dict[str, wiring.Member]:
    """Ports of a row of adders, of gates or not."""
    return {
        "a": In(32 * lanes),
        "b": In(32 * lanes),
        "rounding": In(2),
        "random": In(32),
        "out": Out(32 * lanes),
    }


class Fp32AddRow(wiring.Component):
    """out = RN32(a + b) in each lane, lane i at bits 32i, then Bf16Round of lane i with `rounding` and `random`.

    Timing: operands, `rounding` and `random` of cycle t give `out` in cycle t + Fp32AddPipelined.LATENCY.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        super().__init__(row_ports(lanes))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mode: Value = self.rounding
        word: Value = self.random
        for stage in range(Fp32AddPipelined.LATENCY):
            next_mode, next_word = Signal(2, name=f"mode{stage}"), Signal(32, name=f"word{stage}")
            m.d.sync += [next_mode.eq(mode), next_word.eq(word)]
            mode, word = next_mode, next_word
        sums = []
        for i in range(self.lanes):
            m.submodules[f"lane{i}"] = lane = Placed("plexus_fp32_add", Fp32AddPipelined)
            m.submodules[f"round{i}"] = last = Bf16Round(i)
            m.d.comb += [
                lane.a.eq(self.a.word_select(i, 32)),
                lane.b.eq(self.b.word_select(i, 32)),
                last.x.eq(lane.out),
                last.mode.eq(mode),
                last.word.eq(word),
            ]
            sums.append(last.out)
        m.d.comb += self.out.eq(Cat(*sums))
        return m
