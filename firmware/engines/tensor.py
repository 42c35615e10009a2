"""k.tensor: the systolic array."""

from typing import TYPE_CHECKING, Any

from firmware.engines.base import Engine, access, caller, need
from firmware.views import KernelError, TileView
from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space

if TYPE_CHECKING:
    from firmware.kernel import Kernel

__all__ = ["TensorEngine"]


class TensorEngine(Engine):
    """The systolic array: `k.tensor`."""

    queue = Queue.TENSOR

    def __init__(self, kernel: "Kernel"):
        super().__init__(kernel)
        self._stationary: TileView | None = None

    def load(self, view: TileView) -> None:
        """Load a stationary operand [K partitions, M columns] of SBUF, for the matmuls that follow."""
        k, cfg = self._k, self._k.cfg.tensor
        self._operand(view, "stationary operand")
        need(
            view.elements <= cfg.cols,
            f"stationary operand {view.tile.name} has {view.elements} columns, more than tensor.cols ({cfg.cols})",
        )
        pattern = k.pattern(view, "stationary operand")
        k.issue(
            Queue.TENSOR,
            Opcode.LOAD_STATIONARY,
            accesses=(access(view, False),),
            src0=pattern,
            source=caller(),
        )
        self._stationary = view

    def matmul(self, moving: TileView, psum: TileView, *, accumulate: bool = False) -> None:
        """psum[M, N] = (or += with `accumulate`) stationary[K, M]^T moving[K, N]."""
        k, cfg, stationary = self._k, self._k.cfg.tensor, self._stationary
        if stationary is None:
            raise KernelError(f"a matmul of {moving.tile.name} needs a stationary operand loaded before it")
        self._operand(moving, "moving operand")
        need(
            (moving.start, moving.partitions) == (stationary.start, stationary.partitions),
            f"moving operand {moving.tile.name} is on {moving.partitions} partitions from {moving.start}, "
            f"the stationary one on {stationary.partitions} from {stationary.start}; they must be the same",
        )
        need(
            psum.tile.space == Space.PSUM and psum.start == 0 and psum.partitions == stationary.elements,
            f"a matmul with {stationary.elements} stationary columns writes to {stationary.elements} PSUM "
            f"partitions from 0, not to {psum.partitions} {psum.tile.space.name} partitions "
            f"from {psum.start}",
        )
        need(
            psum.elements == moving.elements <= cfg.moving_max,
            f"a matmul of {moving.elements} moving columns writes {psum.elements}; they must be equal and at "
            f"most tensor.moving_max ({cfg.moving_max})",
        )
        span = 1
        for step, count in reversed(psum.dims):
            if count > 1:
                need(
                    step >= span,
                    f"a matmul writes {psum.tile.name} with step {step}, which meets an element twice; "
                    f"steps must ascend without overlap",
                )
                span = step * count
        fields: dict[str, Any] = {
            "src0": k.pattern(moving, "moving operand"),
            "dst": k.pattern(psum, "result"),
            "accumulate": accumulate,
        }
        # Accumulation reads PSUM too, but in the order of the queue, which the array keeps.
        accesses = (access(moving, False), access(psum, True))
        k.issue(Queue.TENSOR, Opcode.MULTIPLY_MOVING, accesses=accesses, source=caller(), **fields)
        k.columns_sent(moving.elements)

    def _operand(self, view: TileView, what: str) -> None:
        cfg = self._k.cfg.tensor
        need(view.tile.space == Space.SBUF, f"{what} {view.tile.name} lies in PSUM; the array reads from SBUF")
        need(
            view.dtype in ("bf16", "fp16"),
            f"{what} {view.tile.name} is {view.dtype}; it must be bf16 or fp16",
        )
        need(
            view.start + view.partitions <= cfg.rows,
            f"{what} {view.tile.name} ends at partition {view.start + view.partitions - 1}; "
            f"the array has rows 0 to {cfg.rows - 1}",
        )
