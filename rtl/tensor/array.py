"""The systolic array: one port list, two forms."""

from amaranth.hdl import Module
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

    The forms have faults of their own. Errors: ValueError for an unknown form.
    """

    def __init__(self, cfg: Config, form: str = "structural"):
        if form not in FORMS:
            raise ValueError(f"the array's form is {' or '.join(FORMS)}, not {form!r}")
        self.cfg = cfg
        self.form = form
        super().__init__(ArraySignature(cfg))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.form = form = FORMS[self.form](self.cfg)
        connect(m, flipped(self), form)
        return m
