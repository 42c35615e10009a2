"""The program that one run has executed: what its registers decided is decided, and nothing is left open."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from firmware.decisions.steps import executed
from firmware.multiply_adds import NOTE, counted
from firmware.numbers import element_bytes
from firmware.program import Instruction, Program
from rtl.contract.config import TensorConfig
from rtl.contract.isa import Opcode, Queue

__all__ = ["executed_program", "given_registers", "tensor_columns"]


def given_registers(program: Program) -> dict[int, int]:
    """Values of registers, by index: of those that are inputs."""
    values: dict[int, int] = {}
    for register in program.registers:
        tensor = program.tensors[register.tensor]
        if tensor.data is None:
            continue
        bits = np.ascontiguousarray(tensor.data).reshape(-1)
        values[register.index] = int(bits[register.offset // element_bytes(tensor.dtype)].astype(np.int32))
    return values


def executed_program(program: Program, registers: Mapping[int, int]) -> Program:
    """The program of a run in which the registers, by index, had these values; itself if it decides nothing, or some
    are not known."""
    if not any(program.steps.values()) or any(register.index not in registers for register in program.registers):
        return program
    queues, texts = dict(program.queues), {}
    for queue, steps in program.steps.items():
        turns = program.turns(queue)
        if not steps:
            texts[queue] = turns
            continue
        found = executed(steps, program.queues[queue], registers)
        queues[queue] = [instruction for instruction, _ in found]
        texts[queue] = ["" if place is None else turns[place] for _, place in found]
    columns = tensor_columns(queues.get(Queue.TENSOR, []), program.config.tensor)
    made = replace(program, queues=queues, steps={}, loops={}, turn_texts=texts, tensor_columns=columns)
    if NOTE not in program.notes:
        return made
    notes = [note for note in program.notes if note != NOTE]
    return counted(replace(made, macs=0, pe_macs=Fraction(1), notes=notes))


def tensor_columns(instructions: Sequence[Instruction], tensor: TensorConfig) -> int:
    """Moving columns of the busiest row group, as kernels count them (RowTiles.sent)."""
    found = [0] * tensor.groups
    for i in instructions:
        if i.opcode == Opcode.MULTIPLY_MOVING and i.src0 is not None and i.dst is not None:
            each = tensor.groups >> i.tile
            first = i.src0.partition_start // (tensor.rows >> i.tile) * each
            for group in range(first, first + each):
                found[group] += i.dst.elements
    return max(found)
