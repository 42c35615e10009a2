"""Row tiles in the kernel language: words, sentences, waits between tiles; the workload `moe` on the golden machine."""

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel, KernelError, Tile
from firmware.workloads import find_workload
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Opcode, Queue
from verif.golden.machine import GoldenMachine
from verif.golden.tensor import TensorState

SMALL = named("small")
TWO = load("tiny", ["partitions=16", "tensor.rows=16"])


class _Kernel:
    """A kernel with operands on every row, and a tile of PSUM in each bank."""

    def __init__(self, cfg: Config = SMALL):
        self.cfg = cfg
        self.k = Kernel(cfg, "tiles")
        self.x = self.k.sbuf("x", partitions=cfg.partitions, columns=8, dtype="bf16")
        bank = cfg.psum.bank_bytes
        self.sums: list[Tile] = [
            self.k.psum(f"sums{b}", partitions=8, columns=8, align=bank) for b in range(cfg.psum.banks)
        ]

    def matmul(self, start: int, count: int, bank: int, tiles: int, loads: bool = True) -> None:
        operand = self.x[start : start + count, :]
        if loads:
            self.k.tensor.load(operand, tiles=tiles)
        self.k.tensor.matmul(operand, self.sums[bank][:, :], tiles=tiles)

    @property
    def matmuls(self) -> list:
        return [i for i in self.k.instructions(Queue.TENSOR) if i.opcode == Opcode.MULTIPLY_MOVING]


def test_words_name_the_tile() -> None:
    one = _Kernel()
    one.matmul(0, 32, 0, 1)
    one.matmul(16, 16, 1, 2)
    one.matmul(8, 8, 2, 4)
    assert [i.tile for i in one.matmuls] == [0, 1, 2]


def test_columns_of_tiles_at_once_count_once() -> None:
    one = _Kernel()
    for g in range(4):
        one.matmul(8 * g, 8, g, 4)
    assert one.k.program().tensor_columns == 8


def test_a_half_needs_all_of_its_groups_loaded() -> None:
    one = _Kernel()
    one.matmul(0, 16, 0, 2)
    one.matmul(0, 8, 1, 4)
    with pytest.raises(KernelError, match="needs a stationary operand loaded into tile 0 of 2 before it"):
        one.matmul(0, 16, 0, 2, loads=False)
    one.k.tensor.load(one.x[16:32, :], tiles=2)
    with pytest.raises(
        KernelError, match="on tile 3 of 4 finds the stationary operand that was loaded into tile 1 of 2"
    ):
        one.k.tensor.matmul(one.x[24:32, :], one.sums[2][:, :], tiles=4)


@pytest.mark.parametrize(
    ("cfg", "start", "count", "tiles", "sentence"),
    [
        (SMALL, 0, 32, 3, "1, 2 or 4 tiles, not 3"),
        (SMALL, 0, 16, 4, "on partitions 0 to 15; with 4 tiles of 8 rows it must lie in one of them"),
        (SMALL, 0, 32, 2, "on partitions 0 to 31; with 2 tiles of 16 rows"),
        (TWO, 0, 4, 4, "4 tiles need 4 row groups; tiny has 2"),
        (named("tiny"), 0, 4, 2, "2 tiles need 2 row groups; tiny has 1"),
    ],
)
def test_tiles_that_do_not_hold_an_operand(cfg: Config, start: int, count: int, tiles: int, sentence: str) -> None:
    with pytest.raises(KernelError, match=sentence):
        _Kernel(cfg).matmul(start, count, 0, tiles)


def test_tiles_that_run_together_write_different_banks() -> None:
    one = _Kernel()
    one.matmul(0, 8, 0, 4)
    with pytest.raises(KernelError, match="tile 1 of 4 writes sums0 in PSUM bank 0, where one on tile 0 of 4"):
        one.matmul(8, 8, 0, 4)


def test_a_bank_is_free_for_another_tile_once_it_was_read() -> None:
    one = _Kernel()
    out = one.k.sbuf("out", partitions=8, columns=8, dtype="fp32")
    one.matmul(0, 8, 0, 4)
    one.k.vector.copy(out[:, :], one.sums[0][:, :])
    one.matmul(8, 8, 0, 4)  # waits for the copy, which waited for the first matmul


def test_the_whole_array_waits_for_a_tile_in_its_bank() -> None:
    one = _Kernel()
    one.matmul(0, 8, 0, 4)
    one.matmul(24, 8, 1, 4)
    one.matmul(0, 32, 1, 1)  # leaves where the last tile does: in order
    assert not one.matmuls[-1].waits
    one.matmul(0, 32, 0, 1)
    assert [(w.semaphore, w.value) for w in one.matmuls[-1].waits] == [(int(Queue.TENSOR), 2)]


def test_golden_weights_by_tile() -> None:
    """The golden machine against TensorState, which knows nothing of words."""
    one = _Kernel()
    bits = np.random.default_rng(3).integers(0x3E00, 0x4100, (32, 8)).astype(np.uint16)
    one.k.dma(one.x[:, :], one.k.hbm("in", (32, 8), "bf16", bits)[:, :])
    state = TensorState(32, 32, 4)
    values = (bits.astype(np.uint32) << 16).view(np.float32)
    wanted = []
    for bank, (start, count, tiles) in enumerate(((0, 32, 1), (8, 8, 4), (16, 16, 2), (16, 8, 4))):
        one.matmul(start, count, bank, tiles)
        state.load(values[start : start + count], start, tiles)
        wanted.append(state.matmul(values[start : start + count], start, tiles)[:8])
    machine = GoldenMachine(SMALL)
    machine.load(build_image(one.k.program()))
    assert machine.run().faults == []
    for bank, sums in enumerate(wanted):
        at = bank * SMALL.psum.bank_bytes
        assert np.array_equal(machine.psum.bytes[:8, at : at + 32].view("<u4"), sums)


@pytest.mark.parametrize("mode", ["tiles", "one", "whole"])
@pytest.mark.parametrize("dtype", ["bf16", "mxfp8", "w4a8"])
def test_moe_leaves_the_same_bits_in_any_order(mode: str, dtype: str) -> None:
    params = {"tokens": 40, "d": 64, "f": 48, "mode": mode, "dtype": dtype, "experts": 5}
    program = find_workload("moe").build(SMALL, params, seed=5)
    image = build_image(program)
    results = []
    for seed in (None, 7):
        machine = GoldenMachine(SMALL, seed)
        machine.load(image)
        result = machine.run()
        assert result.faults == []
        results.append(result.outputs)
    assert all(np.array_equal(bits, results[1][name]) for name, bits in results[0].items())
    metrics = program.metrics(results[0])
    assert metrics["cosine"] > 1 - 1e-9
    assert metrics["routes_agree"] == 1.0
    assert sum(metrics["tokens_by_expert"]) == 2 * 40


@pytest.mark.parametrize("router", ["vector", "gpsimd"])
def test_moe_whose_tokens_a_run_counts(router: str) -> None:
    """The sums of the static one, to the bits of FP32 that the order of sums is worth."""
    params = {"tokens": 40, "d": 48, "f": 40, "experts": 5, "dynamic": True, "router": router}
    program = find_workload("moe").build(SMALL, params, seed=5)
    assert program.params["mode"] == "whole"
    for seed in (None, 7):
        machine = GoldenMachine(SMALL, seed)
        machine.load(build_image(program))
        metrics = program.metrics(machine.run().outputs)
        assert metrics["cosine"] > 1 - 1e-9 and metrics["routes_agree"] == 1.0
        assert sum(metrics["tokens_by_expert"]) == 2 * 40


def test_moe_of_impossible_sizes() -> None:
    for params, sentence in (
        ({"top_k": 5}, "top_k must be from 1 to experts"),
        ({"d": 40, "dtype": "mxfp8"}, "k=40 is no multiple of 32"),
        ({"dynamic": True, "mode": "tiles"}, "dynamic=true computes one expert after another on the whole array"),
        ({"dynamic": True, "dtype": "fp16"}, "dynamic=true turns gathered rows of x, which are bf16, not fp16"),
        ({"dynamic": True, "router": "gpsimd", "route": "even"}, "routes by scores, and route=even is the host's"),
    ):
        with pytest.raises(KernelError, match=sentence):
            find_workload("moe").build(SMALL, params, seed=1)
    with pytest.raises(KernelError, match="mode=tiles needs row groups; tiny has 8 rows"):
        find_workload("moe").build(named("tiny"), {"d": 16, "f": 8, "tokens": 8}, seed=1)
