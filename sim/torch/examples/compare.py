"""A model on the machine beside torch on the CPU: what the examples print."""

import argparse
import time
from typing import Any

import torch

import sim.torch.door as plexus_torch
from sim.torch.errors import TorchError

__all__ = ["Comparison", "compare", "main"]


class Comparison:
    """`cosine` of both results, `cycles` of the machine (None on the golden machine), seconds of two calls."""

    def __init__(self, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], options: dict[str, Any]):
        compiled = torch.compile(model, backend=plexus_torch.backend, dynamic=False, options=options)
        with torch.no_grad():
            want = model(*inputs)
            begin = time.monotonic()
            got = compiled(*inputs)
            self.first_seconds = time.monotonic() - begin
            self.call = plexus_torch.last()
            begin = time.monotonic()
            compiled(*inputs)
            self.second_seconds = time.monotonic() - begin
        self.second_call = plexus_torch.last()
        self.cosine = float(torch.nn.functional.cosine_similarity(got.flatten(), want.flatten(), dim=0))
        self.cycles = self.call.cycles

    def __str__(self) -> str:
        cycles = "no cycles" if self.cycles is None else f"{self.cycles:,} cycles"
        on_cpu = ", ".join(sorted({one.operator for one in self.call.on_cpu})) or "nothing"
        return (
            f"cosine {self.cosine:.6f}, {cycles}, {len(self.call.results)} program(s); on the CPU: {on_cpu}\n"
            f"first call {self.first_seconds:.1f} s, {self.call.build_seconds:.1f} s of them to build programs; second "
            f"{self.second_seconds:.1f} s, {self.second_call.built} built"
        )


def compare(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], **options: Any) -> Comparison:
    """Two calls, with options of the backend."""
    return Comparison(model.eval(), inputs, options)


def main(name: str, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """Options of the command line: --config, --device, --check."""
    parser = argparse.ArgumentParser(prog=f"python -m sim.torch.examples.{name}")
    parser.add_argument("--config", default="small")
    parser.add_argument("--device", default="rtl")
    parser.add_argument("--check", default="golden")
    given = vars(parser.parse_args())
    try:
        print(f"{name} on {given['config']}, {given['device']}: {compare(model, inputs, **given)}")
    except TorchError as error:
        raise SystemExit(f"error: {error}") from None
