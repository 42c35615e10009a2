"""Names of arithmetic instructions by funct6. Source: RVV 1.0, section "Vector Instruction Listing"."""

__all__ = ["INTEGER", "MULTIPLY", "UNARY"]

INTEGER = {
    0x00: ("vadd", "vxi"), 0x02: ("vsub", "vx"), 0x03: ("vrsub", "xi"), 0x04: ("vminu", "vx"), 0x05: ("vmin", "vx"),
    0x06: ("vmaxu", "vx"), 0x07: ("vmax", "vx"), 0x09: ("vand", "vxi"), 0x0A: ("vor", "vxi"), 0x0B: ("vxor", "vxi"),
    0x0C: ("vrgather", "vxi"), 0x0E: ("vslideup", "xi"), 0x0F: ("vslidedown", "xi"),
    0x10: ("vadc", "vxi"), 0x11: ("vmadc", "vxi"), 0x12: ("vsbc", "vx"), 0x13: ("vmsbc", "vx"),
    0x17: ("vmerge", "vxi"), 0x18: ("vmseq", "vxi"), 0x19: ("vmsne", "vxi"), 0x1A: ("vmsltu", "vx"),
    0x1B: ("vmslt", "vx"), 0x1C: ("vmsleu", "vxi"), 0x1D: ("vmsle", "vxi"), 0x1E: ("vmsgtu", "xi"),
    0x1F: ("vmsgt", "xi"), 0x20: ("vsaddu", "vxi"), 0x21: ("vsadd", "vxi"), 0x22: ("vssubu", "vx"),
    0x23: ("vssub", "vx"), 0x25: ("vsll", "vxi"), 0x27: ("vsmul", "vx"), 0x28: ("vsrl", "vxi"), 0x29: ("vsra", "vxi"),
    0x2A: ("vssrl", "vxi"), 0x2B: ("vssra", "vxi"), 0x2C: ("vnsrl", "vxi"), 0x2D: ("vnsra", "vxi"),
    0x2E: ("vnclipu", "vxi"), 0x2F: ("vnclip", "vxi"), 0x30: ("vwredsumu", "v"), 0x31: ("vwredsum", "v"),
}  # fmt: skip
"""OPIVV, OPIVX, OPIVI: a name, and the letters of forms that it has."""

MULTIPLY = {
    0x00: ("vredsum", "v"), 0x01: ("vredand", "v"), 0x02: ("vredor", "v"), 0x03: ("vredxor", "v"),
    0x04: ("vredminu", "v"), 0x05: ("vredmin", "v"), 0x06: ("vredmaxu", "v"), 0x07: ("vredmax", "v"),
    0x08: ("vaaddu", "vx"), 0x09: ("vaadd", "vx"), 0x0A: ("vasubu", "vx"), 0x0B: ("vasub", "vx"),
    0x0E: ("vslide1up", "x"), 0x0F: ("vslide1down", "x"), 0x17: ("vcompress", "v"),
    0x18: ("vmandn", "v"), 0x19: ("vmand", "v"), 0x1A: ("vmor", "v"), 0x1B: ("vmxor", "v"), 0x1C: ("vmorn", "v"),
    0x1D: ("vmnand", "v"), 0x1E: ("vmnor", "v"), 0x1F: ("vmxnor", "v"),
    0x20: ("vdivu", "vx"), 0x21: ("vdiv", "vx"), 0x22: ("vremu", "vx"), 0x23: ("vrem", "vx"),
    0x24: ("vmulhu", "vx"), 0x25: ("vmul", "vx"), 0x26: ("vmulhsu", "vx"), 0x27: ("vmulh", "vx"),
    0x29: ("vmadd", "vx"), 0x2B: ("vnmsub", "vx"), 0x2D: ("vmacc", "vx"), 0x2F: ("vnmsac", "vx"),
    0x30: ("vwaddu", "vx"), 0x31: ("vwadd", "vx"), 0x32: ("vwsubu", "vx"), 0x33: ("vwsub", "vx"),
    0x34: ("vwaddu.w", "vx"), 0x35: ("vwadd.w", "vx"), 0x36: ("vwsubu.w", "vx"), 0x37: ("vwsub.w", "vx"),
    0x38: ("vwmulu", "vx"), 0x3A: ("vwmulsu", "vx"), 0x3B: ("vwmul", "vx"), 0x3C: ("vwmaccu", "vx"),
    0x3D: ("vwmacc", "vx"), 0x3E: ("vwmaccus", "x"), 0x3F: ("vwmaccsu", "vx"),
}  # fmt: skip
"""OPMVV, OPMVX."""

UNARY = {
    0x10: {0x00: "vmv.x.s", 0x10: "vcpop", 0x11: "vfirst"},
    0x12: {0x04: "vzext.vf4", 0x05: "vsext.vf4", 0x06: "vzext.vf2", 0x07: "vsext.vf2"},
    0x14: {0x01: "vmsbf", 0x02: "vmsof", 0x03: "vmsif", 0x10: "viota", 0x11: "vid"},
}
"""OPMVV: names by funct6 and the field of vs1."""
