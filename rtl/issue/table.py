"""Tables over opcodes: constants that the opcode of an instruction chooses."""

from collections.abc import Mapping

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from rtl.contract.isa import Opcode

__all__ = ["row_of"]


def row_of(
    m: Module, opcode: Value, rows: Mapping[Opcode, Mapping[str, int]], widths: Mapping[str, int] | None = None
) -> data.View:
    """The row of `opcode`: a field for each key, all 0 without a row.

    A field has `widths` bits, else as many as its largest number. So logic exists once, whatever the number of
    opcodes; rows that are alike are one case.
    """
    keys = {key: (widths or {}).get(key, 1) for row in rows.values() for key in row}
    layout = data.StructLayout(
        {key: max(least, *(row.get(key, 0).bit_length() for row in rows.values())) for key, least in keys.items()}
    )
    row = Signal(layout)
    alike: dict[tuple[int, ...], list[Opcode]] = {}
    for code, values in rows.items():
        alike.setdefault(tuple(values.get(key, 0) for key in keys), []).append(code)
    with m.Switch(opcode):
        for values, codes in alike.items():
            with m.Case(*codes):
                m.d.comb += row.eq(layout.const(dict(zip(keys, values, strict=True))))
    return row
