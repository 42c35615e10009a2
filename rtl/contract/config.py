"""Configurations: frozen, complete, refused in a sentence when they make no sense.

`named("small")` gives a configuration; `load(source, overrides)` takes a name or a TOML file
(`base = "small"` and changed fields) and `section.key=value` strings on top.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from rtl.contract.config_changes import changed, merge, settings
from rtl.contract.config_fields import check, number
from rtl.contract.config_sections import (
    ConfigError,
    DmaConfig,
    GpsimdConfig,
    HbmConfig,
    IssueConfig,
    PsumConfig,
    SbufConfig,
    ScalarConfig,
    TensorConfig,
    VectorConfig,
    need,
)
from rtl.contract.fabric_config import FabricConfig
from rtl.contract.toml_file import toml_table

__all__ = [
    "Config",
    "ConfigError",
    "DmaConfig",
    "FabricConfig",
    "GpsimdConfig",
    "HbmConfig",
    "IssueConfig",
    "NAMED",
    "PsumConfig",
    "SbufConfig",
    "ScalarConfig",
    "TensorConfig",
    "VectorConfig",
    "load",
    "named",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an architect would vary about one core. `load` below makes one: `plexus.load_config("small",
    ["dma.rings=4"])` for users."""

    name: str
    partitions: int = number("partitions of SBUF and PSUM, lanes of the engines", 8, 128, of_two=True)
    tensor: TensorConfig
    sbuf: SbufConfig
    psum: PsumConfig = field(default_factory=PsumConfig)
    vector: VectorConfig = field(default_factory=VectorConfig)
    scalar: ScalarConfig = field(default_factory=ScalarConfig)
    gpsimd: GpsimdConfig = field(default_factory=GpsimdConfig)
    dma: DmaConfig
    hbm: HbmConfig
    issue: IssueConfig = field(default_factory=IssueConfig)
    fabric: FabricConfig = field(default_factory=FabricConfig)

    def __post_init__(self) -> None:
        # Folders are named after it, so it must not lead elsewhere.
        need(
            re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}", self.name) is not None,
            f"name must be 1 to 64 of A to Z, a to z, 0 to 9, _ - and ., with no dot in front, not {self.name!r}",
        )
        check("", self)
        for side in ("rows", "cols"):
            size = getattr(self.tensor, side)
            need(
                size <= self.partitions,
                f"tensor.{side} must be at most partitions ({self.partitions}), not {size}",
            )
        need(
            self.dma.engines * 2 <= self.partitions,
            f"dma.engines must be at most half of partitions ({self.partitions // 2}), not {self.dma.engines}",
        )
        need(
            self.dma.engines >= self.hbm.ports,
            f"dma.engines must be at least hbm.ports ({self.hbm.ports}), not {self.dma.engines}",
        )
        need(
            self.partitions // self.dma.engines <= self.partitions // 4,
            f"dma.engines must be at least 4 (one for each quadrant of partitions), not {self.dma.engines}",
        )
        for engine in ("vector", "scalar", "gpsimd"):
            mhz = getattr(self, engine).clock_mhz
            need(
                mhz <= self.tensor.clock_mhz,
                f"{engine}.clock_mhz must be at most tensor.clock_mhz ({self.tensor.clock_mhz}), not {mhz}",
            )
        need(
            self.tensor.moving_max * 4 <= self.psum.bank_bytes * self.psum.banks,
            f"tensor.moving_max must fit in a PSUM partition ({self.psum.partition_bytes // 4} "
            f"FP32 columns), not {self.tensor.moving_max}",
        )

    @property
    def close_clocks(self) -> tuple[str, ...]:
        """Engines whose clock has edges in neighbouring root cycles, which needs another bridge."""
        engines = {"vector": self.vector, "scalar": self.scalar, "gpsimd": self.gpsimd}
        return tuple(name for name, engine in engines.items() if 2 * engine.clock_mhz > self.tensor.clock_mhz)

    @property
    def latency_cycles(self) -> int:
        """HBM latency in tensor cycles, rounded up."""
        return -(-self.hbm.latency_ns * self.tensor.clock_mhz // 1000)

    def as_dict(self) -> dict[str, Any]:
        """All fields, nested, as plain values."""
        return dataclasses.asdict(self, dict_factory=_plain)

    @property
    def hash(self) -> str:
        """Twelve hex digits that name the values (not the name) of this configuration."""
        values = {k: v for k, v in self.as_dict().items() if k != "name"}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields of one section; tuples as lists, which is what a file of values gives back."""
    return {name: list(cast("tuple[object, ...]", v)) if isinstance(v, tuple) else v for name, v in pairs}


_FULL = Config(
    name="full",
    partitions=128,
    tensor=TensorConfig(rows=128, cols=128),
    sbuf=SbufConfig(partition_bytes=262144),
    dma=DmaConfig(engines=16, ring_depth=64, buffer_bytes=16384),
    hbm=HbmConfig(ports=2, port_bytes=128, bytes_per_cycle=255, latency_ns=200, capacity_mib=18432),
)
_TRN4_HBM = dataclasses.replace(_FULL.hbm, ports=4, bytes_per_cycle=1021)
"""An outlook: HBM of four times the bandwidth is all that has been told of it, beside rates of products."""

NAMED: dict[str, Config] = {
    c.name: c
    for c in (
        Config(
            name="tiny",
            partitions=8,
            tensor=TensorConfig(rows=8, cols=8, moving_max=64),
            sbuf=SbufConfig(partition_bytes=8192, banks=4),
            psum=PsumConfig(banks=4, bank_bytes=256),
            dma=DmaConfig(engines=4, rings=2, ring_depth=8, buffer_bytes=1024, burst_bytes=256),
            hbm=HbmConfig(ports=1, port_bytes=32, bytes_per_cycle=32, latency_ns=25, capacity_mib=16),
            issue=IssueConfig(queue_depth=4),
        ),
        Config(
            name="small",
            partitions=32,
            tensor=TensorConfig(rows=32, cols=32),
            sbuf=SbufConfig(partition_bytes=65536),
            dma=DmaConfig(engines=4, buffer_bytes=8192),
            hbm=HbmConfig(ports=1, port_bytes=64, bytes_per_cycle=64, latency_ns=100, capacity_mib=1024),
        ),
        _FULL,
        Config(
            name="trn2",
            partitions=128,
            tensor=TensorConfig(rows=128, cols=128, mx=False),
            sbuf=SbufConfig(partition_bytes=229376),
            vector=VectorConfig(clock_mhz=960, exp_rate=1),
            dma=DmaConfig(engines=16, ring_depth=64, buffer_bytes=16384),
            hbm=HbmConfig(ports=2, port_bytes=128, bytes_per_cycle=151, latency_ns=200, capacity_mib=12288),
        ),
        dataclasses.replace(_FULL, name="trn3"),
        dataclasses.replace(_FULL, name="trn4", hbm=_TRN4_HBM),
    )
}


def named(name: str) -> Config:
    """A named configuration. ConfigError lists the names."""
    if name not in NAMED:
        raise ConfigError(f"there is no configuration {name!r}; the named ones are {', '.join(NAMED)}")
    return NAMED[name]


def load(source: str, overrides: Iterable[str] = ()) -> Config:
    """A configuration from a name or a TOML file, with `section.key=value` changes on top.

    Errors: ConfigError, one sentence. All changes are applied at once, so that their order is free.
    """
    changes: dict[str, Any] = {}
    where = "a setting"
    if source.endswith(".toml"):
        path = Path(source)
        table = toml_table(path, "configuration")
        base = table.pop("base", None)
        if not isinstance(base, str):
            raise ConfigError(f'{source} needs a line base = "NAME"; the named ones are {", ".join(NAMED)}')
        config = named(base)
        table.setdefault("name", path.stem)
        changes, where = table, source
    else:
        config = named(source)
    merge(changes, settings(overrides))
    return changed(config, changes, where)
