"""What a lane's cells compute, in C++: of many lanes at a time (rtl/cells/native_lanes.h), or of what all share."""

from collections.abc import Iterable
from typing import Any

from rtl.emit.lane_netlist import Bit, LaneNetlist, number

__all__ = ["LIMB", "LaneWords"]

LIMB = 64
"""Bits of a variable of C++ at most; a wider value has one for each so many bits, named by _0, _1, ..."""

_BITWISE = {"$and": "&", "$or": "|", "$xor": "^"}
_ARITHMETIC = {"$add": "+", "$sub": "-", "$mul": "*"}
_COMPARES = {"$lt": "<", "$le": "<=", "$eq": "==", "$ne": "!=", "$ge": ">=", "$gt": ">", "$eqx": "==", "$nex": "!="}


def _ones(bits: int) -> int:
    return (1 << bits) - 1


class LaneWords:
    """Expressions over the variables of `lane`; those in `single` are the same for all lanes and so one number each."""

    def __init__(self, lane: LaneNetlist, single: Iterable[str]):
        self.lane = lane
        self.single = frozenset(single)

    def kind(self, name: str, width: int) -> str:
        """The type of a variable, or of a limb of it."""
        letter = "w" if width <= 32 else "d"
        return letter if name in self.single else letter.upper()

    def name(self, variable: str) -> str:
        """What a variable is called in C++, where ports could be called as something else is."""
        return f"p_{variable}" if variable in self.lane.ports else variable

    def declared(self, name: str) -> str:
        """The variable `name`, all of its limbs."""
        width = self.lane.width[name]
        limbs = [name] if width <= LIMB else [f"{name}_{n}" for n in range(-(-width // LIMB))]
        return f"{self.kind(name, min(width, LIMB))} {', '.join(limbs)};"

    def _part(self, name: str, low: int, count: int, at: int, bits: int, vector: bool) -> str:
        """Bits [low, low + count) of a variable, all in one limb, moved to `at` of a number of `bits` (32 or 64)."""
        width = self.lane.width[name]
        if width > LIMB:
            limb = low // LIMB
            text, low, width, own = f"{self.name(name)}_{limb}", low % LIMB, min(LIMB, width - limb * LIMB), 64
        else:
            text, own = self.name(name), 32 if width <= 32 else 64
        text = f"({text} >> {low})" if low else text
        if count < width - low:
            text = f"({text} & {_literal(_ones(count), own)})"
        if own > bits:
            text = f"narrow({text})"
        elif own < bits:
            text = f"widen({text})"
        if vector and name in self.single:
            text = f"all({text})"
        return f"({text} << {at})" if at else text

    def value(self, bits: list[Bit], size: int, vector: bool) -> str:
        """These bits, lowest first, as a number of `size` (32 or 64) bits: of every lane, or one for all."""
        parts: list[str] = []
        constant = at = 0
        bits = bits[:size]
        while at < len(bits):
            bit = bits[at]
            if isinstance(bit, str):
                constant |= (bit == "1") << at
                at += 1
                continue
            name, low = self.lane.of_bit[bit]
            end = at + 1
            while end < len(bits) and (low + end - at) % LIMB:
                following = bits[end]
                if isinstance(following, str) or self.lane.of_bit[following] != (name, low + end - at):
                    break
                end += 1
            parts.append(self._part(name, low, end - at, at, size, vector))
            at = end
        if constant or not parts:
            text = _literal(constant, size)
            parts.append(f"all({text})" if vector and not parts else text)
        return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"

    def _operand(self, cell: dict[str, Any], port: str, size: int, vector: bool, signed: bool) -> str:
        """An input of a cell as a number of `size` bits, its sign in all bits above if it is `signed`."""
        bits = cell["connections"][port]
        text = self.value(bits, size, vector)
        if signed and len(bits) < size:
            top = _literal(1 << len(bits) - 1, size)
            return f"(({text} ^ {top}) - {top})"
        return text

    def statements(self, n: int, vector: bool) -> list[str]:
        """What cell `n` does. Errors: ValueError for a kind that these lanes do not have."""
        cell = self.lane.cells[n]
        kind, c, p = cell["type"], cell["connections"], cell["parameters"]
        out = f"v{n}"
        width = self.lane.width[out]
        if width > LIMB:
            return self._wide_shift(n, vector)
        size = 32 if width <= 32 else 64
        signs = [number(p.get(f"{port}_SIGNED", "0")) == 1 for port in "AB" if port in c]
        signed = bool(signs) and all(signs)
        if kind == "$mux":
            if all(name in self.single for name in self.lane.names(c["S"])):
                one, zero = (self.value(c[port], size, vector) for port in "BA")
                return [f"{out} = {self.value(c['S'], 32, False)} ? {one} : {zero};"]
            said = f"select({self.value(c['S'], 32, vector)}, {self.value(c['B'], size, vector)}, "
            return [f"{out} = {said}{self.value(c['A'], size, vector)});"]
        if kind == "$pmux":
            said = self.value(c["A"], size, vector)
            for k in reversed(range(len(c["S"]))):
                one = self.value(c["B"][k * width : (k + 1) * width], size, vector)
                said = f"select({self.value([c['S'][k]], 32, vector)}, {one}, {said})"
            return [f"{out} = {said};"]
        if kind == "$mem_v2" and number(p["WR_PORTS"]) == 0 and number(p["RD_PORTS"]) == 1:
            return [f"{out} = look_up(rom{n}, {self.value(c['RD_ADDR'], 32, vector)});"]
        if kind in ("$not", "$neg", "$pos"):
            a = self._operand(cell, "A", size, vector, signed)
            said = {"$not": "~", "$neg": "-", "$pos": ""}[kind] + a
        elif kind in _BITWISE or kind in _ARITHMETIC:
            a, b = (self._operand(cell, port, size, vector, signed) for port in "AB")
            said = f"{a} {(_BITWISE | _ARITHMETIC)[kind]} {b}"
            if kind in ("$and", "$or", "$xor") and not signed:
                return [f"{out} = {self._cut(said, cell, size, width)};"]
        elif kind in ("$shl", "$shr", "$sshr"):
            return [self._shift(n, size, width, vector)]
        else:
            return [f"{out} = {self._truth(cell, vector, signed)};"]
        return [f"{out} = ({said}) & {_literal(_ones(width), size)};" if width < size else f"{out} = {said};"]

    def _cut(self, said: str, cell: dict[str, Any], size: int, width: int) -> str:
        """A bitwise result has no bits above its width unless an operand does."""
        longest = max(len(cell["connections"][port]) for port in "AB")
        return said if longest <= width else f"({said}) & {_literal(_ones(width), size)}"

    def _truth(self, cell: dict[str, Any], vector: bool, signed: bool) -> str:
        """Cells whose result is one bit."""
        kind, c = cell["type"], cell["connections"]
        longest = max(len(c[port]) for port in "AB" if port in c)
        if longest > LIMB:
            raise ValueError(f"a lane cannot hold a {kind} of {longest} bits")
        size = 32 if longest <= 32 else 64
        if kind in _COMPARES:
            a, b = (self._operand(cell, port, size, vector, signed) for port in "AB")
            ordered = signed and kind in ("$lt", "$le", "$ge", "$gt")
            return f"truth(sign({a}) {_COMPARES[kind]} sign({b}))" if ordered else f"truth({a} {_COMPARES[kind]} {b})"
        a = self.value(c["A"], size, vector)
        zero = _literal(0, size)
        if kind in ("$reduce_or", "$reduce_bool"):
            return a if longest == 1 else f"truth({a} != {zero})"
        if kind == "$logic_not":
            return f"truth({a} == {zero})"
        if kind == "$reduce_and":
            return f"truth({a} == {_literal(_ones(longest), size)})"
        if kind == "$reduce_xor":
            return f"parity({a})"
        raise ValueError(f"a lane cannot hold a cell of type {kind}")

    def _shift(self, n: int, size: int, width: int, vector: bool) -> str:
        """Left and right, by what is never a negative number."""
        cell = self.lane.cells[n]
        kind, c, p = cell["type"], cell["connections"], cell["parameters"]
        signed = number(p["A_SIGNED"]) == 1
        longest = max(len(c["A"]), width)
        if longest > LIMB or (signed and kind != "$shl"):
            raise ValueError(f"a lane cannot hold a {kind} of {longest} bits" + (" and a sign" if signed else ""))
        inner = 32 if longest <= 32 else 64
        a = self._operand(cell, "A", inner, vector, signed)
        said = f"{'shift_left' if kind == '$shl' else 'shift_right'}({a}, {self._by(c['B'], inner, vector)})"
        said = f"narrow({said})" if inner > size else said
        return f"v{n} = ({said}) & {_literal(_ones(width), size)};" if width < size else f"v{n} = {said};"

    def _by(self, bits: list[Bit], size: int, vector: bool) -> str:
        if len(bits) > 32:
            raise ValueError(f"a lane cannot shift by a number of {len(bits)} bits")
        return self.value(bits, size, vector)

    def _wide_shift(self, n: int, vector: bool) -> list[str]:
        """A number of up to 64 bits moved up into two limbs; nothing else is as wide as that."""
        cell = self.lane.cells[n]
        kind, c, p = cell["type"], cell["connections"], cell["parameters"]
        width = self.lane.width[f"v{n}"]
        if kind != "$shl" or number(p["A_SIGNED"]) or len(c["A"]) > LIMB or len(c["B"]) > 7 or width > 2 * LIMB:
            raise ValueError(f"a lane cannot hold a {kind} of {width} bits")
        a, by = self.value(c["A"], 64, vector), self._by(c["B"], 64, vector)
        high = f"shift_left_high({a}, {by})"
        if width < 2 * LIMB:
            high = f"{high} & {_literal(_ones(width - LIMB), 64)}"
        return [f"v{n}_0 = shift_left({a}, {by});", f"v{n}_1 = {high};"]


def _literal(value: int, size: int) -> str:
    return f"{value:#x}u" if size == 32 else f"{value:#x}ull"
