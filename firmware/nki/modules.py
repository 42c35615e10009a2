"""The modules nki and neuronxcc.nki, in sys.modules for as long as a kernel is imported and runs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import update_wrapper
from itertools import product
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from firmware.nki import isa, isa_across, isa_more, isa_mx, language, language_more, loops  # each fills CALLS
from firmware.nki.dtypes import NAMES, DType
from firmware.nki.errors import MissingError
from firmware.nki.registry import CALLS, MISSING, missing
from firmware.nki.trace import current
from firmware.views import KernelError
from rtl.contract.config import Config

__all__ = ["BUILT_HERE", "Jitted", "modules", "names_of"]

_BUFFERS = ("sbuf", "psum", "hbm", "shared_hbm", "private_hbm")
_FILLED = (isa, isa_across, isa_more, isa_mx, language, language_more, loops)


class Jitted:
    """What @nki.jit makes of a function: `f(...)`, and `f[grid](...)`, whose instances run in turn."""

    def __init__(self, function: Callable[..., Any], grid: tuple[int, ...] = ()):
        self.function, self.grid = function, grid
        update_wrapper(self, function)

    def __getitem__(self, grid: Any) -> "Jitted":
        sizes = grid if isinstance(grid, tuple) else (grid,)
        return Jitted(self.function, tuple(int(n) for n in sizes))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if not self.grid:
            return self.function(*args, **kwargs)
        if trace.shared is not None:
            raise KernelError(f"kernel {self.function.__name__} starts a grid inside a grid")
        before = trace.grid, trace.program_ids
        trace.grid, trace.shared = self.grid, []
        result = None
        try:
            for number, ids in enumerate(product(*map(range, self.grid))):
                trace.program_ids, trace.shared_taken = ids, 0
                found = self.function(*args, **kwargs)
                result = found if number == 0 else result
        finally:
            (trace.grid, trace.program_ids), trace.shared = before, None
        return result


def _jit(function: Any = None, **unused: Any) -> Any:
    """As a decorator with or without arguments."""
    if function is None or not callable(function):
        return lambda f: f if isinstance(f, Jitted) else Jitted(f)
    return function if isinstance(function, Jitted) else Jitted(function)


class _TileSize:
    """nl.tile_size of the configuration."""

    def __init__(self, cfg: Config):
        self.pmax = cfg.partitions
        self.gemm_stationary_fmax = cfg.tensor.cols
        self.gemm_moving_fmax = cfg.tensor.moving_max
        self.psum_fmax = cfg.psum.bank_bytes // 4
        self.bn_stats_fmax = 512
        self.total_available_sbuf_size = cfg.sbuf.partition_bytes
        self.psum_min_align = 4
        self.sbuf_min_align = 64


class _Buffer:
    """nl.sbuf and the like; `alloc` and `mod_alloc` of kernels with places of their own give the same."""

    def __init__(self, name: str):
        self.buffer = name

    def alloc(self, *args: Any, **kwargs: Any) -> "_Buffer":
        current().note(f"{self.buffer}.alloc: places are chosen here, the kernel's own are left out")
        return self

    mod_alloc = auto_alloc = alloc

    def __repr__(self) -> str:
        return f"nl.{self.buffer}"


class _Grid:
    """nl.mgrid: open index arrays, also by the names p, x, y, z, w."""

    def __getitem__(self, key: Any) -> "_Indices":
        return _Indices(np.ogrid[key] if isinstance(key, tuple) else (np.ogrid[key],))


class _Indices(tuple):
    __slots__ = ()

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in "pxyzw" or len(name) != 1 or "pxyzw".index(name) >= len(self):
            raise AttributeError(name)
        return self["pxyzw".index(name)]


class _Anything:
    """nki.typing.tensor[...]."""

    def __getitem__(self, key: Any) -> "_Anything":
        return self


def _module(name: str, names: dict[str, Any], of: str = "") -> ModuleType:
    made = ModuleType(name, "Here while a kernel runs; docs/nki.md.")
    made.__path__ = []  # type: ignore[attr-defined]
    vars(made).update(names)

    def absent(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        if of and wanted in MISSING[of]:

            def refuse(*args: Any, **kwargs: Any) -> Any:
                raise missing(of, wanted)

            return refuse
        if of:
            raise missing(of, wanted)
        near = get_close_matches(wanted, names, n=3, cutoff=0.4)
        raise MissingError(f"{name}.{wanted} is not here; {name} has {', '.join(near or sorted(names))}")

    vars(made)["__getattr__"] = absent
    return made


def _constant(values: Any, dtype: Any = None, **unused: Any) -> Any:
    """nl.shared_constant: values known when the kernel is built, in HBM."""
    return current().shared_values(np.asarray(values), dtype)


BUILT_HERE = {"nki.isa": ("get_nc_version",), "nki.language": ("shared_constant", "spmd_dim", "nc", "range")}
"""Names that can be called and are no calls of the registry."""


def _language(cfg: Config) -> dict[str, Any]:
    names: dict[str, Any] = {n: c.function for n, c in CALLS["nki.language"].items()}
    names |= {name: DType(name) for name in NAMES} | {name: _Buffer(name) for name in _BUFFERS}
    names |= {"mgrid": _Grid(), "tile_size": _TileSize(cfg), "shared_constant": _constant}
    names |= {"spmd_dim": lambda size, cores: int(size) * int(cores), "nc": int, "fp32": DType("float32")}
    names |= {"bool": DType("bool_"), "NKIObject": object, "tensor": _Anything(), "range": range}
    return names


def names_of(cfg: Config) -> dict[str, frozenset[str]]:
    """All names of nki.isa and nki.language, calls and others."""
    return {"nki.isa": frozenset(_isa(cfg)), "nki.language": frozenset(_language(cfg))}


def _mode(*names: str) -> SimpleNamespace:
    return SimpleNamespace(**{name: name for name in names})


_MODES = {
    "oob_mode": _mode("error", "skip"),
    "dge_mode": _mode("none", "hwdge", "swdge", "unknown"),
    "dma_engine": _mode("dma", "gpsimd_dma"),
    "matmul_perf_mode": _mode("none", "double_row", "double_column", "double_pixel"),
}
"""What the hardware has no choice of, or calls refuse."""
_CONSTANTS = _module("nki.isa.constants", _MODES)


def _isa(cfg: Config) -> dict[str, Any]:
    names: dict[str, Any] = {n: c.function for n, c in CALLS["nki.isa"].items()}
    generation = 4 if cfg.tensor.mx else 3
    names |= {"nc_version": SimpleNamespace(gen2=2, gen3=3, gen4=4), "get_nc_version": lambda: generation}
    engines = {f"{e}_engine": e for e in ("tensor", "vector", "scalar", "gpsimd", "unknown")}
    commands = {n: n for n in ("idle", "reset", "reduce", "reset_reduce", "load_reduce")}
    names |= engines | {"engine": SimpleNamespace(**{n.removesuffix("_engine"): e for n, e in engines.items()})}
    return names | {"reduce_cmd": SimpleNamespace(**commands), "constants": _CONSTANTS} | _MODES


def _all(cfg: Config) -> dict[str, ModuleType]:
    decorators = dict.fromkeys(("jit", "baremetal", "benchmark", "profile", "simulate_kernel", "trace"), _jit)
    buffers = {name: _Buffer(name) for name in ("sbuf", "psum")}
    nothing = dict.fromkeys(("skip_middle_end_transformations", "enable_stack_allocator", "no_reorder"), _jit)
    parts = {
        "language": _module("nki.language", _language(cfg), "nki.language"),
        "isa": _module("nki.isa", _isa(cfg), "nki.isa"),
        "isa.constants": _CONSTANTS,
        "typing": _module("nki.typing", {"tensor": _Anything()}),
        "compiler": _module("nki.compiler", buffers | nothing),
    }
    shown = {name: part for name, part in parts.items() if "." not in name}
    nki = _module("nki", decorators | shown | {"tensor": _Anything()})
    found = {"nki": nki, "neuronxcc": _module("neuronxcc", {"nki": nki}), "neuronxcc.nki": nki}
    for name, part in parts.items():
        found |= {f"nki.{name}": part, f"neuronxcc.nki.{name}": part}
    return found


@contextmanager
def modules(cfg: Config) -> Iterator[None]:
    """nki and neuronxcc can be imported in here; afterwards sys.modules has what it had."""
    made = _all(cfg)
    before = {name: sys.modules.get(name) for name in made}
    sys.modules.update(made)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
