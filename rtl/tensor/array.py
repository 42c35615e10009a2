"""The systolic array: one port list, two forms."""

from amaranth.hdl import Module, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from rtl.contract.config import Config
from rtl.tensor.native import NativeArray
from rtl.tensor.ports import ArraySignature
from rtl.tensor.structural import StructuralArray

__all__ = ["FORMS", "Array"]

FORMS = {"structural": StructuralArray, "native": NativeArray}
"""structural: tiles of processing elements. native: a C++ model called by DPI, for simulation only."""


class Array(wiring.Component):
    """The array in one of its FORMS, same ports, same cycles, same bits; see ArraySignature.

    `plant` chooses among the FAULTS of the form. Errors: ValueError for an unknown form.
    """

    FAULTS = StructuralArray.FAULTS

    def __init__(self, cfg: Config, form: str = "structural", plant: ValueLike = 0):
        if form not in FORMS:
            raise ValueError(f"the array's form is {' or '.join(FORMS)}, not {form!r}")
        self.cfg = cfg
        self.form = form
        self.plant = plant
        super().__init__(ArraySignature(cfg))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.form = form = FORMS[self.form](self.cfg, self.plant)
        connect(m, flipped(self), form)
        return m
