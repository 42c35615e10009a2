"""The library of GPSIMD operators: what the language emits and refuses, the committed image, meanings on the golden
machine."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.engines.base import access
from firmware.gpsimd import library as lib
from firmware.gpsimd.core import core_of, need_fit
from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.kernels.gpsimd_operators import PROGRAMS, Operation, operator_program
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import NAMED, Config, load, named
from rtl.contract.gpsimd import lanes
from rtl.contract.gpsimd_operators import ARGUMENTS
from rtl.contract.isa import Opcode, Queue
from sim.toolchain import ROOT, build_root
from verif.checks.gpsimd_operations import OPERATIONS, random_operation
from verif.golden.gpsimd.operators import MEANINGS, order
from verif.golden.machine import GoldenMachine

TINY, SMALL = named("tiny"), named("small")
SCALAR, SMALL_SCALAR = (load(name, ["gpsimd.vectors=false"]) for name in ("tiny", "small"))
EACH = pytest.mark.parametrize("cfg", [TINY, SCALAR], ids=["vectors", "scalar"])
"""An image of the library has code of its own for cores with vectors."""
INT = np.int32
COUNT = count()


def ran(program: Program, seed: int | None = None) -> dict[str, np.ndarray]:
    """Outputs by the golden machine, which takes any order that the waits allow if there is a seed."""
    machine = GoldenMachine(program.config, seed)
    machine.load(build_image(program))
    result = machine.run()
    assert not result.faults
    return program.arrays(result.outputs)


def wrong(program: Program, found: dict[str, np.ndarray]) -> list[str]:
    """Names of results that are not what the operator means."""
    assert program.meaning is not None
    want = MEANINGS[program.meaning.operator](**program.meaning.given)
    assert want.keys() == found.keys()
    return [name for name in want if not np.array_equal(want[name].view(np.uint32), found[name].view(np.uint32))]


# the image


def test_each_operator_has_an_entry_arguments_a_meaning_and_a_program() -> None:
    names = set(ARGUMENTS)
    assert names == set(MEANINGS) == set(PROGRAMS) == set(OPERATIONS)
    assert all(names == set(lib.library(vectors=vectors).entries) for vectors in lib.IMAGES)


def test_the_committed_images_are_what_their_sources_say() -> None:
    record = tomllib.loads(lib.RECORD.read_text())
    assert record["sources"] == lib.source_digest(), "renew with make firmware"
    for vectors, path in lib.IMAGES.items():
        assert record[path.name]["image"] == hashlib.sha256(path.read_bytes()).hexdigest()
        loaded = lib.loaded_bytes(lib.library(vectors=vectors))
        assert loaded == record[path.name]["loaded_bytes"] <= lib.LIBRARY_BYTES_MAX
    assert lib.main([]) == 0


@pytest.mark.parametrize("name", sorted(NAMED))
def test_every_core_takes_it(name: str) -> None:
    for vectors in lib.IMAGES:
        fields = ["gpsimd.local_bytes=16384", f"gpsimd.vectors={str(vectors).lower()}"]
        need_fit(lib.library(vectors=vectors), core_of(load(name, fields)))


@pytest.mark.firmware
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang: make firmware-tools")
def test_the_compiler_gives_the_committed_image_in_any_folder(tmp_path: Path) -> None:
    built, record = lib.build_library()
    assert all(path.read_bytes() == lib.IMAGES[vectors].read_bytes() for vectors, path in built.items())
    assert record == lib.RECORD.read_text()
    for name in ("firmware", "rtl"):
        shutil.copytree(ROOT / name, tmp_path / name)
    environment = {"PYTHONPATH": str(tmp_path), "PLEXUS_BUILD": str(build_root()), "PATH": "/usr/bin:/bin"}
    asked = [sys.executable, "-m", "firmware.gpsimd.library", "--write"]
    said = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.count("as it was") == len(lib.IMAGES)


# the language


@pytest.mark.parametrize("operator", sorted(OPERATIONS))
def test_hazards_are_found(operator: str) -> None:
    """An operator waits for who wrote its operands, and who writes those or reads results waits for it."""
    of = random_operation(operator, SMALL, 1)
    k = Kernel(SMALL, "hazards")
    k.gpsimd.load(lib.library())
    sizes = {name: (*a.shape, {"float32": "fp32"}.get(a.dtype.name, a.dtype.name)) for name, a in of.inputs.items()}
    tiles = {name: k.sbuf(name, partitions=r, columns=c, dtype=d) for name, (r, c, d) in (sizes | of.outputs).items()}
    views = {name: one[:, :] for name, one in tiles.items()}
    for name in of.inputs:
        k.vector.memset(views[name], 0.0)
    getattr(k.gpsimd, operator)(**views, **of.said)
    run = k.instructions(Queue.GPSIMD)[-1]
    vector, gpsimd, item = int(Queue.VECTOR), int(Queue.GPSIMD), k.items(Queue.GPSIMD)
    assert run.opcode == Opcode.GP_RUN
    waited = [(one.semaphore, one.value) for one in run.waits]
    assert waited == ([(vector, len(of.inputs))] if of.inputs else [])
    for name in of.outputs:
        needs = k.needs(Queue.SCALAR, (access(views[name], False),))
        assert needs[gpsimd] == item, name
    for name in of.inputs:
        assert k.needs(Queue.SCALAR, (access(views[name], True),))[gpsimd] == item, name
    fields = ARGUMENTS[operator].unpack(run.imm1 | run.imm2 << 64)
    assert {name for name, value in fields.items() if value} <= {"k", "tokens", "experts", "op", "number", "by_number",
        "mode", "fill", "offset", "relation", "multiplier", "exclusive", "step0"}  # fmt: skip


def test_two_operators_load_one_image() -> None:
    k = Kernel(SMALL, "two")
    x, y = (k.sbuf(name, partitions=32, columns=8, dtype="int32")[:, :] for name in "xy")
    k.gpsimd.iota(x)
    loads = sum(one.opcode == Opcode.GP_LOAD for one in k.instructions(Queue.GPSIMD))
    k.gpsimd.integer(y, x, "add", 3)
    k.gpsimd.prefix_sum(y, y)
    assert sum(one.opcode == Opcode.GP_LOAD for one in k.instructions(Queue.GPSIMD)) == loads


def tile(k: Kernel, columns: int = 4, dtype: str = "int32", **more: Any) -> Any:
    made = {"partitions": 8} | more
    return k.sbuf(f"t{next(COUNT)}", columns=columns, dtype=dtype, **made)[:, :]


def refused(call: Callable[..., Any], *args: Any, **more: Any) -> str:
    with pytest.raises(KernelError) as error:
        call(*args, **more)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_wrong_arguments_are_a_sentence() -> None:
    k = Kernel(SMALL, "refused")
    i, f, u = tile(k), tile(k, dtype="fp32"), tile(k, dtype="uint32")
    one, other = tile(k, columns=1), tile(k, start=8)
    wide = tile(k, columns=100, dtype="fp32")
    half = tile(k, dtype="bf16")
    row = tile(k, partitions=1)
    g = k.gpsimd
    cases: list[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        ("dst of iota is int32 or uint32, not fp32", g.iota, (f,), {}),
        ("iota has a step for each of 1 free axes, not 2", g.iota, (i,), {"steps": (1, 2)}),
        ("iota has steps of 16 bits with sign, and 32768 is none", g.iota, (i,), {"steps": (32768,)}),
        ("relation of affine_select is one of eq, ne, gt, ge, lt, le", g.affine_select, (f, f), {"relation": "above"}),
        ("affine_select has an offset of 24 bits with sign", g.affine_select, (f, f), {"offset": 1 << 23}),
        ("affine_select fills int32 with a whole number of it, and 0.5", g.affine_select, (i, i), {"fill": 0.5}),
        ("x of affine_select is fp32 or int32 or uint32, not bf16", g.affine_select, (f, half), {}),
        ("mode of gather is one of columns, shared, partitions, not 'rows'", g.gather, (i, f, u), {"mode": "rows"}),
        ("gather takes dst of x's format, fp32, not int32", g.gather, (i, f, u), {}),
        ("gather takes an index for each element of dst, 4", g.gather, (f, wide, one), {}),
        ("gather takes 100 shared indices of each core, and 8", g.gather, (wide, f, i), {"mode": "shared"}),
        ("x of gather lies on the partitions of dst", g.gather, (i, other, u), {}),
        ("topk gives at most 64 of 4 elements, not 100", g.topk, (wide, tile(k, columns=100), f), {}),
        ("x of topk is fp32 or int32, not uint32", g.topk, (u, i, u), {}),
        ("values and x of topk overlap", g.topk, (f, i, f), {}),
        ("indices of topk has the shape of values, (8, 4), not (8, 1)", g.topk, (f, one, wide), {}),
        ("nonzero has one count a partition, not 4", g.nonzero, (i, tile(k), f), {}),
        ("x of partition_reduce is int32, not fp32", g.partition_reduce, (row, f), {}),
        ("dst of partition_reduce is one partition, not 8", g.partition_reduce, (i, i), {}),
        ("op of partition_reduce is one of sum, max, min, not 'add'", g.partition_reduce, (row, i, "add"), {}),
        ("x of partition_broadcast is one partition, not 8", g.partition_broadcast, (i, i), {}),
        ("op of integer is one of add, subtract", g.integer, (i, i, "divide", i), {}),
        ("integer takes int32 for max, not uint32", g.integer, (i, u, "max", u), {}),
        ("integer takes a number of 32 bits, and 4294967296", g.integer, (i, i, "add", 1 << 32), {}),
        ("dst of integer overlaps", g.integer, (i[:, :3], i[:, 1:], "add", 1), {}),
        ("dst of prefix_sum has the shape of x", g.prefix_sum, (one, i), {}),
        ("histogram has at most 512 bins, and dst 513", g.histogram, (tile(k, columns=513), i), {}),
        ("route of 8 experts takes a multiple of it", g.route, (i, one, f), {"tokens": 3, "k": 1}),
        ("route has logits of 16 tokens, and 17", g.route, (i, one, tile(k, 16, "fp32")), {"tokens": 17, "k": 1}),
        ("route takes k from 1 to 8 of 8, not 9", g.route, (i, one, tile(k, 16, "fp32")), {"tokens": 3, "k": 9}),
        ("k must be a whole number, not 'two'", g.route, (i, one, f), {"tokens": 3, "k": "two"}),
        ("dst of iota is sums in PSUM", g.iota, (k.psum("sums", partitions=8, columns=4)[:, :],), {}),
    ]
    for says, call, args, more in cases:
        assert says in refused(call, *args, **more)
    assert not k.instructions(Queue.GPSIMD)


def test_a_configuration_without_the_engine() -> None:
    k = Kernel(load("small", ["gpsimd.enabled=false"]), "refused")
    assert "has no programmable engine" in refused(k.gpsimd.iota, tile(k))


# meanings


def test_order_of_numbers() -> None:
    """NaNs are above infinity and equal, zeros are equal, and of equal numbers the first comes first."""
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    row = np.array([0, -0.0, 1, nan, -inf, inf, -nan, 1, -1, 0], np.float32)
    assert order(row).tolist() == [3, 6, 5, 2, 7, 0, 1, 9, 8, 4]
    assert order(np.array([5, -(2**31), 2**31 - 1, 5], INT)).tolist() == [2, 0, 3, 1]


PINNED: list[tuple[Operation, dict[str, list[list[int]]]]] = [
    (
        Operation(
            operator="topk",
            inputs={"x": np.array([[3, 7, 7, -1], [0, 0, 0, 0]], INT)},
            outputs={"values": (2, 3, "int32"), "indices": (2, 3, "int32")},
            means={"k": 3},
        ),
        {"values": [[7, 7, 3], [0, 0, 0]], "indices": [[1, 2, 0], [0, 1, 2]]},
    ),
    (
        Operation(
            operator="nonzero",
            inputs={"x": np.array([[0, 5, 0, -2], [0, 0, 0, 0], [1, 2, 3, 4]], INT)},
            outputs={"indices": (3, 3, "int32"), "count": (3, 1, "int32")},
            means={"columns": 3},
        ),
        {"indices": [[1, 3, -1], [-1, -1, -1], [0, 1, 2]], "count": [[2], [0], [4]]},
    ),
    (
        Operation(
            operator="route",
            inputs={"logits": np.array([[1, 1, 0, 0, 0, 9], [5, 6, 7, -1, -1, -1]], np.float32)},
            outputs={"lists": (3, 2, "int32"), "counts": (3, 1, "int32")},
            said={"tokens": 4, "k": 2},
            means={"experts": 3, "capacity": 2},
        ),
        {"lists": [[0, 2], [0, 1], [1, 2]], "counts": [[3], [3], [2]]},
    ),
    (
        Operation(
            operator="gather",
            inputs={"x": np.array([[10, 11, 12], [20, 21, 22]], INT), "index": np.array([[2, 0], [3, -1]], INT)},
            outputs={"dst": (2, 2, "int32")},
            said={"fill": 7},
            means={"columns": 2, "lanes": 4},
        ),
        {"dst": [[12, 10], [7, 7]]},
    ),
    (
        Operation(
            operator="gather",
            inputs={"x": np.array([[10, 11, 12], [20, 21, 22]], INT), "index": np.array([[0, 2], [1, 0]], INT)},
            outputs={"dst": (2, 3, "int32")},
            said={"mode": "shared"},
            means={"columns": 3, "lanes": 4},
        ),
        {"dst": [[10, 11, 12], [20, 21, 22]]},
    ),
]


def floats(*bits: int) -> np.ndarray:
    return np.array([bits], np.uint32).view(np.float32)


INF, NAN, MINUS_NAN, ZERO, MINUS_ZERO = 0x7F80_0000, 0x7FC0_0001, 0xFFC0_0002, 0, 0x8000_0000
ONE, TWO, MINUS_ONE, MINUS_TWO, LEAST = 0x3F80_0000, 0x4000_0000, 0xBF80_0000, 0xC000_0000, 0x8000_0001


@pytest.mark.parametrize(
    ("row", "k", "want"),
    [
        ((ONE, TWO, INF, MINUS_NAN, NAN), 2, [3, 4]),
        ((ONE, NAN, MINUS_NAN, INF), 2, [1, 2]),
        ((NAN, INF, MINUS_NAN), 1, [0]),
        ((MINUS_TWO, MINUS_ONE, LEAST, MINUS_ZERO, ZERO), 1, [3]),
        ((MINUS_TWO, MINUS_ONE, LEAST, MINUS_ZERO, ZERO), 4, [3, 4, 2, 1]),
        ((ZERO, MINUS_ZERO, LEAST, ZERO), 3, [0, 1, 3]),
        ((MINUS_ZERO, ONE, ZERO, MINUS_ZERO), 3, [1, 0, 2]),
        ((0xFF80_0000, 0xFF80_0000, MINUS_NAN), 2, [2, 0]),
    ],
)
@EACH
def test_pinned_order_of_topk_and_route(row: tuple[int, ...], k: int, want: list[int], cfg: Config) -> None:
    x = floats(*row)
    outputs = {"values": (1, k, "fp32"), "indices": (1, k, "int32")}
    found = ran(operator_program(cfg, Operation(operator="topk", inputs={"x": x}, outputs=outputs, means={"k": k})))
    assert found["indices"].tolist() == [want] and order(x[0])[:k].tolist() == want
    assert found["values"].view(np.uint32).tolist() == [[row[at] for at in want]]
    experts = len(row)
    of = Operation(
        operator="route",
        inputs={"logits": x},
        outputs={"lists": (experts, 1, "int32"), "counts": (experts, 1, "int32")},
        said={"tokens": 1, "k": k},
        means={"experts": experts, "capacity": 1},
    )
    assert sorted(want) == np.flatnonzero(ran(operator_program(cfg, of))["counts"]).tolist()


SPECIAL = np.array(
    [INF, INF | 1 << 31, NAN, MINUS_NAN, ZERO, MINUS_ZERO, ONE, MINUS_ONE, LEAST, 0xFF80_0001, 2**31 - 1, 2**32 - 1],
    np.uint32,
)


def special(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Few values, all of them special, or many, or some of both."""
    bits = rng.choice(rng.choice(SPECIAL, int(rng.integers(1, 6))), shape)
    anything = rng.random(shape) < rng.choice([0, 0.1, 1])
    bits = np.where(anything, rng.integers(0, 1 << 32, shape, np.uint32), bits)
    return bits.view(np.float32 if dtype == "fp32" else INT)


@pytest.mark.parametrize("seed", range(32))
def test_topk_of_rows_that_vectors_hold(seed: int) -> None:
    """All lanes take part: a group, some of them, all 512 columns that a tree has, more of them."""
    rng = np.random.default_rng(seed)
    low, high = ((8, 90), (8, 90), (505, 520), (1016, 1040))[seed // 2 % 4]
    columns, k = int(rng.integers(low, high)), int(rng.integers(1, 9))
    dtype = "fp32" if seed % 2 else "int32"
    cfg = load("tiny" if seed < 24 else "small", ["gpsimd.vectors=true"])
    outputs = {"values": (cfg.partitions, k, dtype), "indices": (cfg.partitions, k, "int32")}
    inputs = {"x": special(rng, (cfg.partitions, columns), dtype)}
    program = operator_program(cfg, Operation(operator="topk", inputs=inputs, outputs=outputs, means={"k": k}))
    assert not wrong(program, ran(program))


@pytest.mark.parametrize("kind", ["ascending", "descending", "normal", "equal", "zero", "large_k"])
@pytest.mark.parametrize("name", ["tiny", "full"])
def test_topk_of_many_columns_of_vectors(name: str, kind: str) -> None:
    """What is quick, what is the worst order, and a k that vectors do not hold."""
    cfg, rng, columns = load(name, ["gpsimd.vectors=true"]), np.random.default_rng(3), 1024
    x = rng.standard_normal((cfg.partitions, columns), np.float32)
    if kind in ("ascending", "descending"):
        x = np.sort(x, axis=1)[:, :: 1 if kind == "ascending" else -1]
    elif kind in ("equal", "zero"):
        x[:] = kind == "equal"
    k = 64 if kind == "large_k" else 8
    x = x[:, :100] if kind == "large_k" else x
    outputs = {"values": (cfg.partitions, k, "fp32"), "indices": (cfg.partitions, k, "int32")}
    of = Operation(operator="topk", inputs={"x": np.ascontiguousarray(x)}, outputs=outputs, means={"k": k})
    program = operator_program(cfg, of)
    assert not wrong(program, ran(program))


@pytest.mark.parametrize("columns", [64, 512, 1024])
def test_topk_of_the_least_integers_of_vectors(columns: int) -> None:
    """They are what a tournament has where nothing is."""
    x = np.full((8, columns), -(2**31), INT)
    outputs = {"values": (8, 8, "int32"), "indices": (8, 8, "int32")}
    of = Operation(operator="topk", inputs={"x": x}, outputs=outputs, means={"k": 8})
    program = operator_program(load("tiny", ["gpsimd.vectors=true"]), of)
    assert not wrong(program, ran(program))


@pytest.mark.parametrize("seed", range(24))
def test_route_by_masks_of_vectors(seed: int) -> None:
    """Experts from the first partition of a core on: cores share a bit for each token and expert."""
    rng = np.random.default_rng(seed)
    cfg = load("full" if seed % 4 == 3 else "small", ["gpsimd.vectors=true"])
    wide, dtype = lanes(cfg.partitions), "fp32" if seed % 2 else "int32"
    experts = int(rng.integers(1, min(64, cfg.partitions) + 1)) if seed % 3 else min(64, cfg.partitions)
    rows, blocks = wide * int(rng.integers(1, cfg.partitions // wide + 1)), int(rng.integers(1, 7))
    tokens, k = int(rng.integers(1, rows * blocks + 1)), int(rng.integers(1, min(9, experts) + 1))
    room = int(rng.choice([1, max(1, tokens // 3), tokens, tokens + 5]))
    first = wide * int(rng.integers(0, (cfg.partitions - experts) // wide + 1))
    if seed % 4 == 2:  # not the same way on all cores: by no masks
        first = int(rng.integers(0, cfg.partitions - experts + 1))
    x = special(rng, (rows, blocks * experts), dtype)
    if seed % 8 == 5:
        x = rng.standard_normal(x.shape, np.float32)
    of = Operation(
        operator="route",
        inputs={"logits": x},
        outputs={"lists": (experts, room, "int32"), "counts": (experts, 1, "int32")},
        said={"tokens": tokens, "k": k},
        means={"experts": experts, "capacity": room},
        start={"logits": 0, "lists": first, "counts": first},
    )
    program = operator_program(cfg, of)
    assert not wrong(program, ran(program, seed))


@EACH
def test_pinned_nonzero_of_fp32(cfg: Config) -> None:
    outputs = {"indices": (1, 4, "int32"), "count": (1, 1, "int32")}
    x = floats(ZERO, MINUS_ZERO, MINUS_NAN, LEAST)
    found = ran(operator_program(cfg, Operation(operator="nonzero", inputs={"x": x}, outputs=outputs)))
    assert found["indices"].tolist() == [[2, 3, -1, -1]] and found["count"].tolist() == [[2]]


@pytest.mark.parametrize(
    ("op", "a", "b", "want"),
    [
        ("add", 2**31 - 1, 1, -(2**31)),
        ("subtract", -(2**31), 1, 2**31 - 1),
        ("multiply", 1 << 16, 1 << 15, -(2**31)),
        ("bit_and", -2, 7, 6),
        ("bit_or", 5, 2, 7),
        ("bit_xor", -1, 5, -6),
        ("shift_left", 1, 33, 2),
        ("shift_right", -8, 1, 2**31 - 4),
        ("shift_right_signed", -8, 33, -4),
        ("max", -1, 1, 1),
        ("min", -1, 1, -1),
    ],
)
@EACH
def test_pinned_integers(op: str, a: int, b: int, want: int, cfg: Config) -> None:
    outputs = {"dst": (1, 1, "int32")}
    for y in (b, np.array([[b]], INT)):
        inputs = {"x": np.array([[a]], INT)} | ({"y": y} if isinstance(y, np.ndarray) else {})
        said: dict[str, Any] = {"op": op} | ({} if isinstance(y, np.ndarray) else {"y": y})
        of = Operation(operator="integer", inputs=inputs, outputs=outputs, said=said)
        program = operator_program(cfg, of)
        found = ran(program)
        assert found["dst"].tolist() == [[want]] and wrong(program, found) == []


CANARY = 0x5A5A_0000
ROOMY = load("tiny", ["sbuf.partition_bytes=16384"])


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("operator", sorted(OPERATIONS))
def test_nothing_else_is_written(operator: str, step: int) -> None:
    """Operands are columns of wider tiles on all partitions: all other words of these stay."""
    p = ROOMY.partitions
    for seed in range(20, 25):
        of = random_operation(operator, ROOMY, seed)
        k = Kernel(ROOMY, "wide")
        shapes = {
            name: (*a.shape, {"float32": "fp32"}.get(a.dtype.name, a.dtype.name)) for name, a in of.inputs.items()
        }
        views, wide, places = {}, {}, {}
        for name, (rows, columns, dtype) in (shapes | of.outputs).items():
            size, first = step * columns + 5, of.start.get(name, 0)
            places[name] = slice(first, first + rows), slice(2, 2 + step * (columns - 1) + 1, step)
            before = np.full((p, size), CANARY, np.uint32)
            if name in of.inputs:
                before[places[name]] = of.inputs[name].view(np.uint32)
            wide[name] = k.sbuf(f"{name} tile", partitions=p, columns=size, dtype=dtype)
            k.dma(wide[name][:, :], k.hbm(f"{name} before", before.shape, dtype, before)[:, :])
            views[name] = wide[name][places[name]]
        getattr(k.gpsimd, operator)(**views, **of.said)
        for name, tile_ in wide.items():
            k.dma(k.hbm(name, (p, tile_.columns), tile_.dtype)[:, :], tile_[:, :])
        machine = GoldenMachine(ROOMY, seed)
        machine.load(build_image(k.program()))
        outputs = machine.run().outputs
        want = {name: a.view(np.uint32) for name, a in MEANINGS[operator](**of.inputs, **of.said, **of.means).items()}
        for name, bits in (want | {name: a.view(np.uint32) for name, a in of.inputs.items()}).items():
            assert np.array_equal(outputs[name][places[name]], bits), f"{name}, seed {seed}"
            outputs[name][places[name]] = CANARY
            assert (outputs[name] == CANARY).all(), f"beside {name}, seed {seed}"


@pytest.mark.parametrize(("of", "want"), PINNED, ids=[f"{n} {of.operator}" for n, (of, _) in enumerate(PINNED)])
@EACH
def test_pinned_results(of: Operation, want: dict[str, list[list[int]]], cfg: Config) -> None:
    program = operator_program(cfg, of)
    found = ran(program)
    assert {name: array.tolist() for name, array in found.items()} == want
    assert wrong(program, found) == []


@pytest.mark.parametrize("cfg", [TINY, SMALL, SCALAR], ids=["tiny", "small", "scalar"])
@pytest.mark.parametrize("operator", sorted(OPERATIONS))
def test_golden_is_what_numpy_means(operator: str, cfg: Config) -> None:
    for seed in range(8):
        program = operator_program(cfg, random_operation(operator, cfg, seed))
        assert wrong(program, ran(program, seed)) == [], f"seed {seed}"


@pytest.mark.regress
@pytest.mark.parametrize(
    "cfg", [TINY, SMALL, named("full"), SCALAR, SMALL_SCALAR], ids=lambda c: f"{c.name}{'v' * c.gpsimd.vectors}"
)
@pytest.mark.parametrize("operator", sorted(OPERATIONS))
def test_golden_is_what_numpy_means_many_times(operator: str, cfg: Config) -> None:
    for seed in range(100, 110 if cfg.name == "full" else 160):
        program = operator_program(cfg, random_operation(operator, cfg, seed))
        assert wrong(program, ran(program, seed)) == [], f"seed {seed}"


def test_up_to_four_axes_and_steps_of_a_view() -> None:
    """iota of [p, 2, 3, 4] in another order than memory; affine_select of every second column, in place."""
    k = Kernel(TINY, "axes")
    numbers = k.sbuf("numbers", partitions=8, columns=24, dtype="int32")
    view = numbers[:, :].split(0, 12).split(1, 4).permute((1, 0, 2))
    k.gpsimd.iota(view, offset=5, multiplier=100, steps=(-7, 40, 3))
    wide = k.sbuf("wide", partitions=8, columns=10, dtype="int32")
    k.gpsimd.iota(wide[:, :])
    k.gpsimd.affine_select(wide[:, ::2], wide[:, ::2], relation="gt", offset=-3, multiplier=1, steps=(1,), fill=-9)
    for name, of in (("n", numbers), ("w", wide)):
        k.dma(k.hbm(name, (8, of.columns), "int32")[:, :], of[:, :])
    machine = GoldenMachine(TINY)
    machine.load(build_image(k.program()))
    outputs = machine.run().outputs
    p, a, b, c = np.ogrid[:8, :3, :2, :4]
    want = (5 + 100 * p - 7 * a + 40 * b + 3 * c).transpose(0, 2, 1, 3).reshape(8, 24)
    assert np.array_equal(outputs["n"].view(INT), want)
    p, i = np.ogrid[:8, :10]
    chosen = np.where((i % 2 == 0) & (i // 2 + p <= 3), -9, i)
    assert np.array_equal(outputs["w"].view(INT), chosen)


# the workload


def test_parameters_of_a_program() -> None:
    workload = find_workload("gpsimd")
    topk = workload.parse(["program=topk", "k=3"])
    assert topk == {
        "program": "topk", "out": None, "partitions": None, "columns": 1024, "seed": None, "k": 3, "dtype": "fp32"
    }  # fmt: skip
    for settings, says in (
        (["program=topq"], "there is no program 'topq'; the nearest is 'topk' of iota, affine_select"),
        (["program=topk", "bins=3"], "program topk takes partitions, columns, seed, k, dtype, and no 'bins'"),
        (["program=topk", "elf=a.elf"], "program and elf exclude each other"),
        (["bins=3"], "bins belongs to an operator of the library: program=NAME says which"),
        (["program=topk", "k=65"], "k must be at most 64, not 65"),
    ):
        with pytest.raises(KernelError) as error:
            workload.parse(settings)
        assert says in str(error.value) and "\n" not in str(error.value)
    for settings, says in (
        (["program=iota", "partitions=33"], "partitions=33 are more than small has, 32"),
        (["program=topk", "columns=4"], "topk gives at most 64 of 4 elements, not 8"),
        (["program=integer", "op=sum"], "op of integer is one of add, subtract"),
        (["program=topk", "columns=20000"], "gpsimd of columns=20000, k=8 does not fit the memories of small"),
    ):
        with pytest.raises(KernelError) as error:
            workload.build(SMALL, workload.parse(settings))
        assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("tokens", "experts", "top_k"), [(40, 5, 2), (64, 8, 8), (9, 1, 1)])
def test_moe_routes_its_tokens(tokens: int, experts: int, top_k: int) -> None:
    """Lists of tokens by expert are those of the host, who routes by the same scores; the results of experts are as
    without."""
    workload = find_workload("moe")
    sizes = {"tokens": tokens, "experts": experts, "top_k": top_k, "d": 24, "f": 16, "mode": "whole"}
    outputs = []
    for router in ("vector", "gpsimd"):
        program = workload.build(SMALL, sizes | {"router": router}, seed=3)
        machine = GoldenMachine(SMALL, 1)
        machine.load(build_image(program))
        outputs.append(machine.run().outputs)
        assert program.metrics(outputs[-1])["routes_agree"] == 1.0
    by_vector, by_cores = outputs
    results = [name for name in by_vector if name != "top"]
    assert set(by_cores) == {*results, "lists", "counts"}
    assert all(np.array_equal(by_vector[name], by_cores[name]) for name in results)
    lists, counts = (by_cores[name].view(INT) for name in ("lists", "counts"))
    assert [(row >= 0).sum() for row in lists] == counts[:, 0].tolist() and counts.sum() == tokens * top_k
    lists[0, 0] = -1
    assert program.metrics(by_cores)["routes_agree"] < 1.0


def test_moe_without_the_engine() -> None:
    """It works as ever by the vector engine, and a sentence refuses the other way."""
    cfg, workload = load("small", ["gpsimd.enabled=false"]), find_workload("moe")
    sizes = {"tokens": 16, "d": 16, "f": 16, "mode": "whole"}
    assert workload.build(cfg, sizes).tensors["top"].output
    said = refused(workload.build, cfg, sizes | {"router": "gpsimd"})
    assert "has no programmable engine" in said
    said = refused(workload.build, SMALL, sizes | {"router": "gpsimd", "scored": False})
    assert said == "router=gpsimd routes by the scores of the machine, and scored=false leaves them out"
