"""Rounds of request, grant and accept."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import lowest
from rtl.base.fault import fault

__all__ = ["Islip"]


class Islip(wiring.Component):
    """iSLIP: each free output offers itself to an input that asks, each input takes one, `rounds` times.

    asks: by output, a bit an input. match: by output, one-hot the input it got. A pointer moves past whom it chose
    only for pairs of the first round, in a cycle with `step`. Timing: combinational beside the pointers.
    """

    def __init__(self, count: int, rounds: int):
        self.count = count
        self.rounds = rounds
        super().__init__(
            {
                "step": In(1),
                "asks": In(count).array(count),
                "rows": In(count),
                "columns": In(count),
                "match": Out(count).array(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        grant_later = [Signal(n, name=f"grant_later_{o}") for o in range(n)]  # inputs above the one chosen last
        accept_later = [Signal(n, name=f"accept_later_{i}") for i in range(n)]
        step = self.step & ~fault("pointers of iSLIP never move")

        def turn(requests: Value, later: Value, name: str) -> Signal:
            asking, first, chosen = (Signal(n, name=f"{name}_{what}") for what in ("asking", "first", "chosen"))
            m.d.comb += [
                asking.eq(requests),
                first.eq(lowest(asking & later)),
                chosen.eq(Mux(first.any(), first, lowest(asking))),
            ]
            return chosen

        def above(chosen: Value) -> Value:
            """Bits above the one that is set: none above the last."""
            return ~(chosen | (chosen - 1))[:n]

        rows, columns = self.rows, self.columns
        match: list[Value] = [Cat()] * n
        for r in range(self.rounds):
            offers = [
                turn(self.asks[o] & rows & columns[o].replicate(n), grant_later[o], f"offer_{r}_{o}") for o in range(n)
            ]
            takes = [turn(Cat(*(offer[i] for offer in offers)), accept_later[i], f"take_{r}_{i}") for i in range(n)]
            for o in range(n):
                got = Signal(n, name=f"got_{r}_{o}")
                m.d.comb += got.eq(Cat(*(take[o] for take in takes)))
                match[o] = got if r == 0 else match[o] | got
                if r == 0:
                    with m.If(step & got.any()):
                        m.d.sync += grant_later[o].eq(above(got))
            if r == 0:
                for i in range(n):
                    with m.If(step & takes[i].any()):
                        m.d.sync += accept_later[i].eq(above(takes[i]))
            rows_next, columns_next = Signal(n, name=f"rows_{r}"), Signal(n, name=f"columns_{r}")
            m.d.comb += [
                rows_next.eq(rows & ~Cat(*(take.any() for take in takes))),
                columns_next.eq(columns & ~Cat(*(Cat(*(take[o] for take in takes)).any() for o in range(n)))),
            ]
            rows, columns = rows_next, columns_next
        m.d.comb += [self.match[o].eq(match[o]) for o in range(n)]
        return m
