"""Multiply-adds of a program whose kernel does not say how many it needs: those of its own matmuls."""

from dataclasses import replace
from fractions import Fraction

from firmware.program import Instruction, Program
from rtl.contract.isa import Opcode, Queue
from rtl.contract.kinds import ELEMENTS, Kind

__all__ = ["NOTE", "counted"]

NOTE = "macs are those of the matmuls, rows x columns x moving columns of each; the kernel says none (program(macs=))"
_FP32_PASSES = 4
_TURNS = "transpose"  # what kernels call a product with the identity


def _beats(i: Instruction) -> int:
    """Beats of processing elements."""
    return i.src0.partition_count * i.dst.partition_count * i.dst.elements if i.src0 and i.dst else 0


def _each(kind: Kind) -> Fraction:
    """Multiply-adds of a processing element in a beat: a product of FP32 takes four passes over halves; of sparse
    weights those of kept numbers."""
    return Fraction(1, _FP32_PASSES) if kind in (Kind.HIGH, Kind.LOW) else Fraction(ELEMENTS[kind])


def counted(program: Program) -> Program:
    """The program with them, and a note; itself if it says some, or has no matmul. Transposes do not count."""
    matmuls = [
        i
        for i in program.queues.get(Queue.TENSOR, [])
        if i.opcode == Opcode.MULTIPLY_MOVING and i.part != _TURNS and _beats(i)
    ]
    if program.macs or not matmuls:
        return program
    macs = sum((_beats(i) * _each(i.kind) for i in matmuls), Fraction(0))
    pe_macs = macs / sum(map(_beats, matmuls))
    return replace(program, macs=int(macs), pe_macs=pe_macs, notes=[*program.notes, NOTE])
