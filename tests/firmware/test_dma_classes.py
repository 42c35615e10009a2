"""Workload dma with traffic classes: what each moves, on which configuration, and what is refused."""

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import KernelError
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import Config, named
from rtl.contract.isa import Queue
from rtl.contract.roles import Uses
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
DMA = find_workload("dma")


def built(*settings: str, cfg: Config = TINY) -> tuple[Config, Program]:
    params = DMA.parse(settings)
    cfg = DMA.configure(cfg, params)
    return cfg, DMA.build(cfg, params)


@pytest.mark.parametrize("direction", ["read", "write", "inside"])
@pytest.mark.parametrize(("classes", "strict"), [("8:4:2:1", None), ("3:1", 1)])
def test_classes_have_a_ring_and_as_much_each(direction: str, classes: str, strict: int | None) -> None:
    more = [] if strict is None else [f"strict={strict}"]
    cfg, program = built(f"classes={classes}", f"direction={direction}", "row_bytes=64", "rows=72", *more)
    count = len(classes.split(":"))
    assert cfg.dma.weights[:count] == tuple(map(int, classes.split(":"))) and cfg.dma.classes == 4
    assert cfg.dma.rings == max(count, TINY.dma.rings) and cfg.dma.strict_class == (-1 if strict is None else strict)
    assert len(program.rings) == count and program.uses == Uses.CLASSES
    sizes = []
    for c, ring in enumerate(program.rings):
        assert {d.class_ for d in ring} == {c}
        sizes.append(sum(d.bytes for d in ring))
    pattern = TINY.partitions * 64
    assert len(set(sizes[1:])) == 1 and sizes[0] == sizes[1] + pattern
    assert sizes[1] == 72 * 64 * (1 if direction == "write" else 2)  # what lands comes back
    queues = {q for q in Queue if any(i.opcode.name == "DMA_TRIGGER" for i in program.queues[q])}
    assert len(queues) == count


@pytest.mark.parametrize("add", ["fp32", "bf16", "int32"])
def test_classes_add(add: str) -> None:
    """Each class adds its rows to blocks of the pattern."""
    cfg, program = built("classes=2:1", f"add={add}", "direction=inside", "row_bytes=64", "rows=64")
    assert program.uses == Uses.CLASSES | Uses.SUMS
    machine = GoldenMachine(cfg)
    machine.load(build_image(program))
    outputs = machine.run().outputs
    assert np.array_equal(outputs["out0"], outputs["out1"]) and outputs["out0"].any()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("strict=1", "strict=1 needs classes, as in classes=8:4:2:1"),
        ("classes=8", "classes must be 2 to 4 weights, as in 8:4:2:1, not 8"),
        ("classes=1:1:1:1:1", "classes must be 2 to 4 weights, as in 8:4:2:1, not 1:1:1:1:1"),
        ("classes=0:1", "classes=0:1: dma.weights must be 4 numbers from 1 to 64, not 0, 1, 1, 1"),
        ("classes=a:b", "classes=a:b: dma.weights must be whole numbers, as in 8:4:2:1, not 'a:b:1:1'"),
        ("classes=1:1 strict=2", r"strict must be -1 \(none\) or a class from 0 to 1, not 2"),
        ("classes=1:1 direction=both", "classes go with direction=read, write, inside, not both"),
        ("classes=1:1 row_bytes=1024", "row_bytes must be at most 480 with 2 classes and direction=read, not 1024"),
        ("classes=1:1 rows=7 row_bytes=64", r"must be a multiple of 8 \(partitions\) from 64 to 504 .* not 7"),
        ("classes=1:1 rows=512 row_bytes=64", "from 64 to 504 with direction=read and row_bytes=64, not 512"),
        ("classes=1:1 rows=800000 direction=write", "from 64 to 8192 with direction=write and row_bytes=512"),
        ("classes=1:1 direction=write add=fp32", "add=fp32 is done beside SBUF; direction=write writes to HBM"),
    ],
)
def test_what_is_refused(settings: str, sentence: str) -> None:
    with pytest.raises(KernelError, match=sentence):
        built(*settings.split())


def test_classes_need_the_configuration_that_the_workload_makes() -> None:
    with pytest.raises(KernelError, match="classes=3:1 needs a configuration of its own"):
        DMA.build(TINY, DMA.parse(["classes=3:1", "row_bytes=64"]))
