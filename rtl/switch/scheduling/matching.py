"""The matching of a switch: merged, a plain wavefront, or iSLIP; then a second pass."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.scheduling.islip import Islip
from rtl.switch.scheduling.merge import Merge
from rtl.switch.scheduling.orders import distances
from rtl.switch.scheduling.permute import Permute
from rtl.switch.scheduling.restore import Restore
from rtl.switch.scheduling.wavefront import Wavefront

__all__ = ["Matching"]


class Matching(wiring.Component):
    """Matches the inputs `rows` and the outputs `columns`.

    wants, wants_any: by diagonal, one bit per place (`Wavefront`): who asks an output for the class that it serves, for
    any class; asks: the former by output, a bit an input. old: by input, its pair of before (out_port) may stand;
    owned, select: the same by output. lengths: by input and output, flits that wait.
    match: by output, one-hot its input; kept: inputs whose pair of before stands.
    Timing: combinational; `step` moves iSLIP's pointers.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        n = cfg.inputs
        by_input = data.ArrayLayout(range(n), n)
        super().__init__(
            {
                "step": In(1),
                "exchange": In(data.ArrayLayout(n, len(distances(n)))),
                "turn": In(range(n)),
                "wants": In(n).array(n),
                "wants_any": In(n).array(n),
                "asks": In(n).array(n),
                "rows": In(n),
                "columns": In(n),
                "old": In(n),
                "out_port": In(by_input),
                "owned": In(n),
                "select": In(by_input),
                "lengths": In(data.ArrayLayout(data.ArrayLayout(range(cfg.length_cap_flits + 1), n), n)),
                "match": Out(n).array(n),
                "kept": Out(n),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.cfg.inputs
        rows: Value = Signal(n)  # places still free
        columns: Value = self.columns
        found: list[tuple[Value, list[Value]]] = []  # places and numbers of their outputs
        fixed: list[Value] = [Const(0, n)] * n  # by output, what is known in the order of the inputs

        if self.cfg.matching == "islip":
            m.submodules.islip = islip = Islip(n, self.cfg.islip_iterations)
            got = Cat(islip.match[o].any() for o in range(n))
            m.d.comb += [
                islip.step.eq(self.step),
                *(islip.asks[o].eq(self.asks[o]) for o in range(n)),
                islip.rows.eq(self.rows),
                islip.columns.eq(self.columns),
            ]
            left, columns_left = Signal(n), Signal(n)
            m.d.comb += [left.eq(self.rows & ~_union(list(islip.match))), columns_left.eq(self.columns & ~got)]
            m.d.comb += rows.eq(self._to_places(m, "rows_to_places", left)[0])
            columns = columns_left
            fixed = [islip.match[o] for o in range(n)]
        else:
            m.d.comb += rows.eq(self._to_places(m, "rows_to_places", self.rows)[0])
            fresh = self._wavefront(m, "fresh", self.wants, rows, columns)
            stands: Value = fresh.found
            if self.cfg.matching == "merged":
                take, take_columns = self._merge(m, fresh)
                kept_placed, stands = self._to_places(m, "merge_to_places", self.kept, take)
                standing = self.owned & Cat(self.kept.bit_select(self.select[o], 1) for o in range(n))
                columns = Signal(n, name="columns_left")
                m.d.comb += columns.eq(self.columns & ~standing & ~take_columns)
                rows = rows & ~kept_placed & ~stands
                fixed = [Mux(standing[o], Const(1, n) << self.select[o], 0) for o in range(n)]
            else:
                columns, rows = fresh.columns_left, rows & ~stands
            found.append((stands, [vector & stands for vector in fresh.index]))
        fill = self._wavefront(m, "fill", self.wants, rows, columns)
        idle = (rows & ~fill.found) & ~fault("a matching has no second pass").replicate(n)
        second = self._wavefront(m, "second", self.wants_any, idle, fill.columns_left)
        found += [(w.found, list(w.index)) for w in (fill, second)]

        m.submodules.restore = restore = Restore(n)
        m.d.comb += [
            restore.exchange.eq(self.exchange),
            restore.turn.eq(self.turn),
            restore.found.eq(_union([places for places, _ in found])),
        ]
        m.d.comb += [restore.index[b].eq(_union([index[b] for _, index in found])) for b in range(len(second.index))]
        m.d.comb += [self.match[o].eq(restore.match[o] | fixed[o]) for o in range(n)]
        return m

    def _to_places(self, m: Module, name: str, *vectors: Value) -> list[Value]:
        m.submodules[name] = permute = Permute(self.cfg.inputs, len(vectors))
        m.d.comb += [permute.exchange.eq(self.exchange), permute.turn.eq(self.turn)]
        m.d.comb += [permute.i[v].eq(vector) for v, vector in enumerate(vectors)]
        return [permute.o[v] for v in range(len(vectors))]

    def _wavefront(self, m: Module, name: str, asks: Sequence[Value], rows: Value, columns: Value) -> Wavefront:
        m.submodules[name] = wavefront = Wavefront(self.cfg.inputs)
        m.d.comb += [wavefront.rows.eq(rows), wavefront.columns.eq(columns)]
        m.d.comb += [mine.eq(diagonal) for mine, diagonal in zip(wavefront.asks, asks)]
        return wavefront

    def _merge(self, m: Module, fresh: Wavefront) -> tuple[Value, Value]:
        """Merge the pairs of before with fresh ones; inputs and outputs whose fresh pair stands."""
        n = self.cfg.inputs
        bits = self.cfg.length_cap_flits.bit_length()
        m.submodules.back = back = Restore(n)
        m.submodules.merge = merge = Merge(n, self.cfg.length_cap_flits)
        m.d.comb += [
            back.exchange.eq(self.exchange),
            back.turn.eq(self.turn),
            back.found.eq(fresh.found),
            back.index.eq(fresh.index),
            merge.old.eq(self.old),
            merge.owned.eq(self.owned),
            merge.owner.eq(self.select),
            merge.new.eq(back.rows),
            merge.new_output.eq(back.output),
            self.kept.eq(merge.keep),
        ]
        for i in range(n):
            waiting = Value.cast(self.lengths[i])
            m.d.comb += [
                merge.old_weight[i].eq(waiting.word_select(self.out_port[i], bits)),
                merge.new_weight[i].eq(waiting.word_select(back.output[i], bits)),
            ]
        return merge.take, Cat((back.match[o] & merge.take).any() for o in range(n))


def _union(vectors: list[Value]) -> Value:
    total = vectors[0]
    for vector in vectors[1:]:
        total = total | vector
    return total
