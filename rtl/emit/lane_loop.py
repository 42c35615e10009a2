"""What every lane does, as one loop in a function: cells in order, alternatives under `if` where all lanes agree."""

import re
from collections.abc import Iterable

from rtl.emit.lane_netlist import Bit, LaneNetlist

__all__ = ["Block", "LaneLoop"]

Block = tuple[int, int] | None
"""One side of the multiplexer that is cell [0]; its sides count as the bits of its select, -1 if none is 1."""


_MANY = 40
"""Cells of a lane: above, a simulator shall not write them anew for each lane, as it does for 64 lanes or fewer. That
makes megabytes of C++ and gains nothing; a loop of few cells is a tenth slower than its turns one by one."""


class LaneLoop:
    """Functions over `count` lanes of which the variables in `shared` are the same for all.

    Cells that depend on shared variables only stand before the loop. Where they steer a multiplexer, all lanes go
    the same way, so what only one of its sides needs is evaluated on that side, under an `if`.
    """

    def __init__(self, lane: LaneNetlist, count: int, shared: frozenset[str]):
        self.lane = lane
        self.count = count
        self.shared = shared
        self.arrays = {register["name"] for register in lane.registers} - shared

    def function(self, name: str, results: dict[str, list[Bit]]) -> list[str]:
        """A function of that name that assigns `results`, registers' next values or vectors, for every lane.

        What it keeps for itself is nobody's state, so a simulator keeps it in the processor's registers.
        """
        lane = self.lane
        order, read = lane.cone(bit for bits in results.values() for bit in bits)
        mine = sorted(read - self.shared)
        common = self.common(order)
        inside = self.inside(order, common, results)
        vectors = [of for of in mine if of not in self.arrays]
        own = re.compile(rf"\b({'|'.join(mine)})\b") if mine else None

        def said(text: str) -> str:
            return own.sub(r"\1_i", text) if own else text

        def block(where: Block, indent: str) -> list[str]:
            lines: list[str] = []
            for n in inside.get(where, []):
                sides = [(side, bits) for side, bits in self.sides(n, common) if side is not None]
                if not any((n, side) in inside for side, _ in sides):
                    lines.append(f"{indent}{said(lane.statement(n))}")
                    continue
                select = lane.cells[n]["connections"]["S"]
                start = indent
                for side, bits in sides:
                    test = f"if ({said(lane.value([select[side]]))}) " if side >= 0 else ""
                    lines += [f"{start}{test}begin", *block((n, side), indent + "  ")]
                    lines += [f"{indent}  v{n} = {said(lane.value(bits))};", f"{indent}end"]
                    start = f"{indent}else "
            return lines

        once = {of: bits for of, bits in results.items() if of.removesuffix("_next") in self.shared}
        lines = [f"  function automatic void {name}();"]
        lines += [f"    reg [{lane.width[of] - 1}:0] {of}_i;" for of in mine]
        lines += [f"    reg [{lane.width[of] * self.count - 1}:0] {of}_all;" for of in vectors]
        lines += [f"    reg [{lane.width[f'v{n}'] - 1}:0] v{n};" for n in order]
        lines += ["    integer i;", "    begin"]
        lines += [f"      {lane.statement(n)}" for n in order if n in common]
        lines += [f"      {of} = {lane.value(bits)};" for of, bits in once.items()]
        if len(once) < len(results):
            # else a simulator may put what drives a vector in its place, and make all of it anew for each lane
            lines += [f"      {of}_all = {of};" for of in vectors]
            if len(order) > _MANY:
                lines += ["      /* verilator unroll_disable */"]
            lines += [f"      for (i = 0; i < {self.count}; i = i + 1) begin"]
            lines += [
                f"        {of}_i = {self._element(f'{of}_all' if of in vectors else of, lane.width[of])};"
                for of in mine
            ]
            lines += block(None, "        ")
            each = {of: bits for of, bits in results.items() if of not in once}
            lines += [f"        {self._element(of, len(b))} = {said(lane.value(b))};" for of, b in each.items()]
            lines += ["      end"]
        return [*lines, "    end", "  endfunction"]

    def _element(self, name: str, width: int) -> str:
        """Lane i's part of a register, its next value, or a vector."""
        return f"{name}[i]" if name.removesuffix("_next") in self.arrays else f"{name}[{width} * i +: {width}]"

    def common(self, order: Iterable[int]) -> set[int]:
        """The cells that compute the same for every lane."""
        driver, found = self.lane.driver, set[int]()
        for n in order:
            sources = self.lane.names(self.lane.inputs(n))
            if all(driver[s] in found if s in driver else s in self.shared for s in sources):
                found.add(n)
        return found

    def sides(self, n: int, common: set[int]) -> list[tuple[int | None, list[Bit]]]:
        """What cell `n` looks at, by side if it is a multiplexer that goes the same way in all lanes."""
        cell, driver = self.lane.cells[n], self.lane.driver
        if n not in common and cell["type"] in ("$mux", "$pmux"):
            select = self.lane.names(cell["connections"]["S"])
            if all(driver[s] in common if s in driver else s in self.shared for s in select):
                return self.lane.sides(n)
        return [(None, self.lane.inputs(n))]

    def inside(self, order: list[int], common: set[int], results: dict[str, list[Bit]]) -> dict[Block, list[int]]:
        """The cells, in order, under each side of a multiplexer; under None those always evaluated."""
        lane = self.lane
        uses: dict[int, list[tuple[int, int | None]]] = {n: [] for n in order}
        for n in order:
            sides: dict[int, set[int | None]] = {}
            for side, bits in self.sides(n, common):
                for name in lane.names(bits):
                    if name in lane.driver:
                        sides.setdefault(lane.driver[name], set()).add(side)
            for used, of in sides.items():
                uses[used].append((n, of.pop() if len(of) == 1 else None))
        kept = {lane.driver[n] for bits in results.values() for n in lane.names(bits) if n in lane.driver}
        place: dict[int, Block] = {}
        for n in reversed(order):
            if n in common or n in kept:
                place[n] = None
                continue
            paths: list[list[Block]] = []
            for block in {place[user] if side is None else (user, side) for user, side in uses[n]}:
                path: list[Block] = [block]
                while path[-1] is not None:
                    path.append(place[path[-1][0]])
                paths.append(path[::-1])
            together = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
            place[n] = together[-1]
        inside: dict[Block, list[int]] = {}
        for n in order:
            if n not in common:
                inside.setdefault(place[n], []).append(n)
        return inside
