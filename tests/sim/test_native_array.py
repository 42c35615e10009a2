"""The native form of the systolic array at full size."""

import re
from pathlib import Path

import pytest

from rtl.contract.config import named
from sim.runner import run_bench

pytestmark = pytest.mark.sim

ARRAY_BENCH = "verif.benches.tensor.bench_array"


PATHS = {"avx512": {"avx512f"}, "avx2": {"avx2", "fma"}, "portable": set[str]()}
"""Instruction sets of the native model, and the flags of a processor that has them."""


def host_flags() -> set[str]:
    """What Linux says that the processor can do."""
    file = Path("/proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)$", file.read_text(), re.MULTILINE) if file.exists() else None
    return set(flags[1].split()) if flags else set()


@pytest.mark.parametrize("path", PATHS)
def test_native_array_at_full_size(path: str) -> None:
    """Every instruction set of the C++ model, at the size where its widest loops run."""
    if missing := PATHS[path] - host_flags():
        pytest.skip(f"this processor has no {', '.join(sorted(missing))}")
    verdict = run_bench(
        "array",
        ARRAY_BENCH,
        named("full"),
        options={"form": "native"},
        environment={"PLEXUS_NATIVE_PATH": path},
    ).require()
    assert f"plexus_native_array uses {path}\n" in (verdict.folder / "run.log").read_text()
