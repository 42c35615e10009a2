"""West edge of the array: eight rows of codes become lanes, each row two cycles later than the one above."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Placed
from rtl.contract.config import TensorConfig
from rtl.contract.kinds import Kind
from rtl.contract.sparsity import PATTERNS, SLOTS, TAG_BITS
from rtl.contract.timing import PE_ROW_CYCLES
from rtl.numeric.pe.pe_operand import pe_operand
from rtl.numeric.pe.unpack import Unpack
from rtl.tensor.lanes import NUMBERS, OPERAND_BITS, OTHERS, SLOT_BITS, weight_bits
from rtl.tensor.ports import MODE_BITS
from rtl.tensor.tile import TILE
from rtl.tensor.unpack_lane import CODE_BITS, UnpackLane

__all__ = ["Edge", "code_bits"]

_NUMBER_BITS = 16  # of a code in a sparse beat


def code_bits(tensor: TensorConfig, moving: bool) -> int:
    """Bits of a row's data that an edge takes."""
    return SLOTS * _NUMBER_BITS if moving and tensor.sparsity else CODE_BITS


class Edge(wiring.Component):
    """Codes, modes, scales and `flag_bits` flags a row in, lanes and flags out, for a tile's rows.

    Row k at bits k * its size in every port. Timing: row k leaves 1 + 2k cycles after it entered. Reset:
    flags are 0. With tensor.sparsity: the stationary edge turns `tags` into slots, the moving one gives each row the
    numbers of its aligned four rows: the first one in the lane of a SPARSE beat, which is one more flag, and `others`.
    """

    def __init__(self, tensor: TensorConfig, moving: bool, flag_bits: int):
        self.tensor = tensor
        self.moving = moving
        self.flag_bits = flag_bits
        self.lane_bits = Shape.cast(pe_operand(tensor.mx)).width if moving else weight_bits(tensor)
        self.gives_numbers = moving and tensor.sparsity
        self.takes_tags = not moving and tensor.sparsity
        ports = {
            "codes": In(code_bits(tensor, moving) * TILE),
            "modes": In(MODE_BITS * TILE),
            "scales": In(8 * TILE),
            "flags": In(flag_bits * TILE),
            "lanes": Out((self.lane_bits + flag_bits + self.gives_numbers) * TILE),
        }
        if self.takes_tags:
            ports["tags"] = In(TAG_BITS * TILE)
        if self.gives_numbers:
            ports["others"] = Out(OTHERS.size * TILE)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes: list[Value] = []
        others: list[Value] = []
        for k in range(TILE):
            mode = self.modes.word_select(k, MODE_BITS)
            lane = Cat(self._unpacked(m, k, mode), self.flags.word_select(k, self.flag_bits))
            if self.gives_numbers:
                sparse = mode[4:7] == Kind.SPARSE
                if k % SLOTS == 0:  # one line of delays for four rows
                    first, late = self._numbers(m, k)
                    late = self._late(m, late, PE_ROW_CYCLES * k + 1, f"others{k}", reset_less=True)
                else:
                    late = self._late(m, late, PE_ROW_CYCLES, f"others{k}", reset_less=True)
                others.append(late)
                lane = Cat(Mux(sparse, first, lane[:OPERAND_BITS]), lane[OPERAND_BITS:], sparse)
            lanes.append(self._late(m, lane, 1 + PE_ROW_CYCLES * k, f"row{k}"))
        m.d.comb += self.lanes.eq(Cat(*lanes))
        if self.gives_numbers:
            m.d.comb += self.others.eq(Cat(*others))
        return m

    def _unpacked(self, m: Module, k: int, mode: Value) -> Value:
        """What row k holds, as the processing elements take it."""
        unpack = Placed("plexus_unpack_lane", lambda: UnpackLane(self.tensor), clocked=False)
        m.submodules[f"unpack_{k}"] = unpack
        m.d.comb += [
            unpack.bits.eq(self.codes.word_select(k, len(self.codes) // TILE)),
            unpack.dtype.eq(mode[:4]),
            unpack.kind.eq(mode[4:7]),
            unpack.scale.eq(self.scales.word_select(k, 8)),
        ]
        if self.takes_tags:
            m.d.comb += unpack.slot.eq(self._slot(m, k, mode[7:]))
        return unpack.lane[: min(self.lane_bits, len(unpack.lane))]

    def _slot(self, m: Module, k: int, code: Value) -> Value:
        """Which of the numbers of its four rows the weight of row k meets. A tag beyond its bus goes on in the rows
        after it, and from the last of the four to the first."""
        slot = Signal(SLOT_BITS, name=f"slot{k}")
        with m.Switch(Cat(self.tags.word_select(k, TAG_BITS), code)):
            for pattern in PATTERNS.values():
                for tag in range(1 << TAG_BITS):
                    with m.Case(tag | pattern.code << TAG_BITS):
                        m.d.comb += slot.eq(pattern.slot(k, tag) % NUMBERS)
        return slot

    def _numbers(self, m: Module, first: int) -> tuple[Value, Value]:
        """The numbers of the aligned four rows from `first` on, if their beats are sparse: the first and the others."""
        numbers: list[Value] = []
        for row in range(first, first + SLOTS):
            for e in range(SLOTS):
                unpack = Placed("plexus_unpack", Unpack, clocked=False)
                m.submodules[f"number_{row}_{e}"] = unpack
                m.d.comb += [
                    unpack.bits.eq(self.codes.word_select(row * SLOTS + e, _NUMBER_BITS)),
                    unpack.dtype.eq(self.modes.word_select(row, MODE_BITS)[:4]),
                ]
                numbers.append(Value.cast(unpack.operand)[:OPERAND_BITS])
        return numbers[0], Cat(*numbers[1:])

    def _late(self, m: Module, value: Value, cycles: int, name: str, *, reset_less: bool = False) -> Value:
        """`value` of `cycles` cycles ago."""
        for stage in range(cycles):
            late = Signal(len(value), name=f"{name}_stage{stage}", reset_less=reset_less)
            m.d.sync += late.eq(value)
            value = late
        return value
