"""Vector CSRs by address. Source: RVV 1.0, section 3."""

from collections.abc import Callable

from verif.golden.riscv.vector.state import VectorState

__all__ = ["VECTOR_CSRS", "vector_readers", "vector_writers"]

VECTOR_CSRS = {
    "vstart": 0x008, "vxsat": 0x009, "vxrm": 0x00A, "vcsr": 0x00F, "vl": 0xC20, "vtype": 0xC21, "vlenb": 0xC22,
}  # fmt: skip


def vector_readers(state: VectorState) -> dict[int, Callable[[], int]]:
    """What a CSR instruction reads."""
    found: dict[str, Callable[[], int]] = {
        "vstart": lambda: state.vstart,
        "vxsat": lambda: state.vxsat,
        "vxrm": lambda: state.vxrm,
        "vcsr": lambda: state.vxsat | state.vxrm << 1,
        "vl": lambda: state.vl,
        "vtype": lambda: state.vtype,
        "vlenb": lambda: state.vlen // 8,
    }
    return {VECTOR_CSRS[name]: read for name, read in found.items()}


def vector_writers(state: VectorState) -> dict[int, Callable[[int], None]]:
    """What a CSR instruction writes: of vstart as many bits as an index of the longest vector has."""

    def write_vcsr(value: int) -> None:
        state.vxsat, state.vxrm = value & 1, value >> 1 & 3

    found: dict[str, Callable[[int], None]] = {
        "vstart": lambda value: setattr(state, "vstart", value & state.vlen - 1),
        "vxsat": lambda value: setattr(state, "vxsat", value & 1),
        "vxrm": lambda value: setattr(state, "vxrm", value & 3),
        "vcsr": write_vcsr,
    }
    return {VECTOR_CSRS[name]: write for name, write in found.items()}
