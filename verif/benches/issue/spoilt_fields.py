"""Changes of a legal instruction that break a rule, or just do not."""

from rtl.contract.isa import REDUCTIONS, Opcode
from verif.agents.bench import manifest
from verif.benches.issue.check_driver import ARRAY
from verif.benches.issue.words import Fields

__all__ = ["wrong_numbers", "wrong_operands"]


def wrong_numbers(base: Fields) -> list[Fields]:
    """What may be wrong outside the operands; some of it is right for some opcodes."""
    imm2 = base.get("imm2", 0)
    changes: list[Fields] = [{"flags": 1}, {"axes": 3 - base.get("axes", 0)}, {"wait1": 2, "wait1_semaphore": 4095}]
    changes += [{"column0": 1, "imm0": 2}, {"column0": 1, "imm0": 1 << 24}, {"column1": 1, "imm1": (1 << 24) - 4}]
    changes += [{f"imm{i}": base.get(f"imm{i}", 0) ^ 1 << bit} for i in range(3) for bit in (0, 5, 31, 32, 47, 63)]
    changes += [{"op0": op} for op in (0, 1, 3, 7, 8, 13, 20, 32, 63)] + [{"op1": op} for op in (0, 1, 6, 13, 14, 38)]
    changes += [{"reduce": kind, "imm1": 7} for kind in range(4)] + [{"store": 1, "reduce": 0}, {"op0": 0, "op1": 1}]
    if base["opcode"] == Opcode.ACTIVATION:
        changes += [{"imm2": imm2 & ~(0xFF << 32) | code << 32} for code in (3, 4, 6, 7, 15, 16, 31, 32, 255)]
        changes += [{"imm2": imm2 & ~(63 << 40) | op << 40, "reduce": 2} for op in (0, 2, 3, 8, 63, *REDUCTIONS)]
        changes += [{"reduce": 3, "op0": 3, "op1": 1}]
    if base["opcode"] == Opcode.QUANTIZE_MX:
        place, columns = base["imm0"] & 0xFFFFFF, base["dst_count0"]
        ends = [manifest().config.sbuf.partition_bytes - columns + change for change in (0, 1, 2, 4)]
        changes += [{"imm0": base["imm0"] - place + at} for at in (0, 2, (1 << 24) - 4, *ends)]
        changes += [{"src0_count0": 4 * columns + n, "dst_count0": columns + n // 4} for n in (-4, 4, 8, 16)]
        changes += [{f"{name}_{field}": 2} for name in ("src0", "dst") for field in ("step0", "count1", "count3")]
        changes += [{f"{name}_offset": at} for name in ("src0", "dst") for at in (0, 2, 4, 8)]
        changes += [{f"{name}_partition_count": n} for name in ("src0", "dst") for n in (2, 4, 8, 16)]
        changes += [{"dst_offset": manifest().config.sbuf.partition_bytes - columns * n} for n in (1, 2, 4)]
    if base["opcode"] == Opcode.SHUFFLE:
        changes += [{"imm0": base["imm0"] & ~63 | entry} for entry in (0, 7, 8, 31, 32, 33, 63)]
    return changes


def wrong_operands(base: Fields, name: str) -> list[Fields]:
    """What may be wrong with an operand."""
    size = 4 if base[f"{name}_dtype"] in (0, 3, 11, 14) else 2
    changes: list[Fields] = [
        {f"{name}_offset": base[f"{name}_offset"] + change} for change in (1, 2, size, -size, 1 << 18)
    ]
    for field in ("partition_start", "partition_count", "space", "count3", "count0"):
        changes += [{f"{name}_{field}": max(0, base[f"{name}_{field}"] + change)} for change in (1, -1)]
    changes += [{f"{name}_partition_start": base[f"{name}_partition_start"] + 8}]  # a block of partitions further
    changes += [{f"{name}_dtype": code} for code in (0, 3, 7, 14)]
    changes += [{f"{name}_partition_start": base[f"{name}_partition_start"] + blocks} for blocks in (8, 32)]
    if base["opcode"] in ARRAY:
        changes += [{"kind": kind} for kind in range(8)] + [{"sparsity": code} for code in range(8)]
    return [*changes, {f"{name}_reserved": 1}]
