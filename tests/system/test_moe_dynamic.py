"""A mixture of experts whose tokens a run counts: one program, several routings, on RTL and the golden machine."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from firmware.decisions.executed import executed_program
from firmware.image import Image, build_image
from firmware.kernels.moe import moe
from firmware.kernels.moe_dynamic import block_of, list_arrays
from firmware.kernels.moe_routes import Routes
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import named
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY = named("tiny")
TOKENS, EXPERTS, D, F = 20, 4, 20, 24  # of 3 blocks, the last one not full; d is no multiple of the array's rows


def run(image: Image) -> RunResult:
    """On RTL, compared with the golden machine in order and under random orders."""
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        got = device.run()
    assert (got.end, got.faults) == ("done", ())
    for order in (None, 0, 1, 2):
        machine = GoldenMachine(TINY, order)
        machine.load(image)
        want = machine.run()
        assert want.faults == []
        for name, bits in want.outputs.items():
            assert np.array_equal(got.outputs[name], bits), (name, order)
    return got


def words(image: Image) -> list[bytes]:
    """Of all queues, rings and what they execute: the program, without its data."""
    memory = image.memory()
    return [memory[base : base + count * 128].tobytes() for base, count in (*image.queues.values(), *image.rings)]


def given(seed: int, drawn: int | None = None) -> dict[str, np.ndarray]:
    """Operands; if `drawn` is given, no token wants expert 0 and all want that one."""
    rng = np.random.default_rng(seed)
    x, gate = (rng.standard_normal(shape, np.float32) for shape in ((TOKENS, D), (D, EXPERTS)))
    if drawn is not None:
        x, gate = np.abs(x), gate / 64
        gate[:, 0], gate[:, drawn] = -1, 1
    return {"x": x, "gate": gate, "weights": rng.standard_normal((EXPERTS, D, F), np.float32)}


def program_of(arrays: dict[str, np.ndarray], **more: Any) -> Program:
    return moe(TINY, arrays["x"], arrays["gate"], arrays["weights"], mode="whole", dynamic=True, **more)


def other(program: Program, data: dict[str, np.ndarray]) -> Image:
    """The same program with other bits in some of its inputs."""
    tensors = {name: replace(t, data=data.get(name, t.data)) for name, t in program.tensors.items()}
    assert set(data) <= set(tensors)
    return build_image(replace(program, tensors=tensors))


def routing(experts: list[list[int]], shares: np.ndarray) -> Routes:
    """Of the experts of each token and the shares [tokens, experts]."""
    tokens = [np.array([t for t, chosen in enumerate(experts) if e in chosen], np.int64) for e in range(EXPERTS)]
    return Routes(np.zeros(shares.shape), tokens, [shares[at, e] for e, at in enumerate(tokens)])


def reference(arrays: dict[str, np.ndarray], experts: list[list[int]], shares: np.ndarray) -> np.ndarray:
    """y [tokens, f] in float64 of operands rounded to BF16."""
    x, weights = (decode(encode(arrays[n], "bf16"), "bf16").astype(np.float64) for n in ("x", "weights"))
    rows = [sum(float(shares[t, e]) * (x[t] @ weights[e]) for e in chosen) for t, chosen in enumerate(experts)]
    return np.array(rows)


@pytest.mark.parametrize("top_k", [1, 2])
def test_lists_decide_which_tokens_an_expert_gets(top_k: int) -> None:
    """One program: by scores, all tokens to one expert and none to another, each expert in turn, and at random."""
    arrays = given(1)
    program = program_of(arrays, top_k=top_k, scored=False)
    first = build_image(program)
    got = run(first)
    assert program.metrics(got.outputs)["cosine"] > 1 - 1e-9
    rng, cycles = np.random.default_rng(2), {}
    routings = {
        "one": [[1, 2 + t % 2][:top_k] for t in range(TOKENS)],
        "turns": [[t % EXPERTS, (t + 1) % EXPERTS][:top_k] for t in range(TOKENS)],
        "random": [rng.permutation(EXPERTS)[:top_k].tolist() for _ in range(TOKENS)],
    }
    for name, experts in routings.items():
        shares = rng.random((TOKENS, EXPERTS), np.float32)
        image = other(program, list_arrays(routing(experts, shares), top_k, block_of(TINY)))
        assert words(image) == words(first)
        got = run(image)
        counts = [sum(e in chosen for chosen in experts) for e in range(EXPERTS)]
        assert got.registers == dict(enumerate(counts))
        found = decode(got.outputs["y"], "fp32")
        assert np.abs(found - reference(arrays, experts, shares)).max() < 1e-5, name
        cycles[name] = got.cycles
    if top_k == 1:  # of one expert 3 blocks, of four experts in turn as many as experts, each with its weights
        assert cycles["one"] < cycles["turns"]


@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_what_gpsimd_cores_have_routed_decides(top_k: int) -> None:
    """Nothing of the routing comes from the host: the same program with other x, gate and weights has another one."""
    made = [program_of(arrays, top_k=top_k, router="gpsimd") for arrays in (given(3), given(4, drawn=1))]
    images = [build_image(one) for one in made]
    assert words(images[0]) == words(images[1])
    data = {name: t.data for name, t in made[1].tensors.items() if t.data is not None}
    for program, image in ((made[0], images[0]), (made[1], other(made[0], data))):
        got = run(image)
        metrics = program.metrics(got.outputs)
        assert metrics["routes_agree"] == 1.0 and metrics["cosine"] > 1 - 1e-9
        assert metrics["max_abs_error"] < 2e-5
        assert got.registers == dict(enumerate(metrics["tokens_by_expert"]))
    if top_k < EXPERTS:
        assert metrics["tokens_by_expert"][:2] == [0, TOKENS]


@pytest.mark.parametrize("experts", [[2], [0, 1], [0, 1, 2, 3]], ids=str)
def test_an_expert_without_tokens_is_not_loaded(experts: list[int]) -> None:
    """Weights of those with tokens are read, and rows of as many blocks as their tokens need."""
    program = program_of(given(5), top_k=1, scored=False)
    shares = np.ones((TOKENS, EXPERTS), np.float32)
    routes = routing([[experts[t % len(experts)]] for t in range(TOKENS)], shares)
    got = run(other(program, list_arrays(routes, 1, block_of(TINY))))
    made = executed_program(program, got.registers)
    blocks = sum(-(-len(at) // block_of(TINY)) for at in routes.tokens)
    sources = [copy.source.tensor for copy in made.copies()]
    assert sources.count("x") == sources.count("shares") == blocks
    assert sum(copy.bytes for copy in made.copies() if copy.source.tensor == "w") == len(experts) * D * F * 2
    assert got.retired_total == sum(map(len, made.queues.values()))
