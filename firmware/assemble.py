"""Instructions and descriptors to 128-byte words."""

from collections.abc import Mapping

from firmware.program import Descriptor, Instruction, Place
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import COPY_AT, INSTRUCTION, Update, Wait
from rtl.contract.memmap import Space, address

__all__ = ["Offsets", "descriptor_word", "instruction_word"]

SEMAPHORE_BYTES = 4
_PLAIN = (
    "accumulate",
    "op0",
    "op1",
    "reverse0",
    "reverse1",
    "column0",
    "column1",
    "reduce",
    "store",
    "axes",
    "negate",
    "kind",
    "tile",
    "rounding",
    "sparsity",
)
_PLAIN += ("imm0", "imm1", "imm2")


def _pattern(prefix: str, pattern: AccessPattern | None) -> dict[str, int]:
    if pattern is None:
        return {}
    return {f"{prefix}_{name}": value for name, value in pattern.fields().items()}


Offsets = Mapping[tuple[int, str], int]
"""The HBM offset of each tensor by core and name."""


def _absolute(place: Place, offsets: Offsets) -> int:
    base = offsets[place.core, place.tensor] if place.tensor else 0
    return address(place.space, place.offset + base, core_id=place.core)


def instruction_word(instruction: Instruction, offsets: Offsets | None = None) -> bytes:
    """The 128 bytes of an instruction; `offsets` for places it names. ValueError names a field that does not fit."""
    values: dict[str, int] = {
        "opcode": instruction.opcode,
        **_update(instruction),
        **{name: int(getattr(instruction, name)) for name in _PLAIN},
        **_pattern("src0", instruction.src0),
        **_pattern("src1", instruction.src1),
        **_pattern("dst", instruction.dst),
    }
    for number, place in enumerate((instruction.place1, instruction.place2), 1):
        if place is not None:
            values[f"imm{number}"] = _absolute(place, offsets or {})
    if len(instruction.waits) > 2:
        raise ValueError(f"an instruction has two wait slots, not {len(instruction.waits)}")
    for slot, wait in enumerate(instruction.waits):
        values[f"wait{slot}"] = Wait.GE
        values[f"wait{slot}_semaphore"] = wait.semaphore
        values[f"wait{slot}_value"] = wait.value
    word = INSTRUCTION.pack(values)
    if instruction.descriptor is not None:
        word |= int.from_bytes(descriptor_word(instruction.descriptor, offsets or {}), "little") << COPY_AT
    return word.to_bytes(INSTRUCTION.bytes, "little")


def _update(instruction: Instruction) -> dict[str, int]:
    if not instruction.adds:
        return {}
    return {"update": Update.ADD, "update_semaphore": instruction.update, "update_value": instruction.adds}


def descriptor_word(descriptor: Descriptor, offsets: Offsets) -> bytes:
    """The 128 bytes of a descriptor."""
    values = {
        "source": _absolute(descriptor.source, offsets),
        "destination": _absolute(descriptor.destination, offsets),
        "row_bytes": descriptor.row_bytes,
        "class_": descriptor.class_,
        "add": descriptor.add,
        "signal_address": address(
            Space.SEMAPHORES, descriptor.signal * SEMAPHORE_BYTES, core_id=descriptor.signal_core
        ),
        "signal_update": Update.ADD,
        "signal_value": 1,
    }
    if len(descriptor.dims) > 3:
        raise ValueError(f"a descriptor has three dimensions of rows, not {len(descriptor.dims)}")
    dims = descriptor.dims + ((1, 0, 0),) * (3 - len(descriptor.dims))
    for i, (count, source_step, destination_step) in enumerate(dims):
        values[f"count{i}"] = count
        values[f"source_step{i}"] = source_step
        values[f"destination_step{i}"] = destination_step
    if choice := descriptor.choice:
        values |= {
            "indirect": choice.table,
            "index_skips": choice.skips,
            "index_down": choice.down,
            "index": choice.offset // 4,
            "table_rows": choice.rows,
        }
    return DESCRIPTOR.pack(values).to_bytes(DESCRIPTOR.bytes, "little")
