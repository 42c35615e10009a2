"""Configurations: frozen, complete, refused in a sentence when they make no sense.

`named("small")` gives a configuration; `load(source, overrides)` takes a name or a TOML file
(`base = "small"` and changed fields) and `section.key=value` strings on top.
"""

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

__all__ = [
    "Config",
    "ConfigError",
    "DmaConfig",
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


class ConfigError(ValueError):
    """A configuration that makes no sense; the text is one sentence with the value and the rule."""


def _need(ok: bool, sentence: str) -> None:
    if not ok:
        raise ConfigError(sentence)


def _power_of_two(name: str, value: int, low: int, high: int) -> None:
    _need(
        value & (value - 1) == 0 and low <= value <= high,
        f"{name} must be a power of two from {low} to {high}, not {value}",
    )


def _within(name: str, value: int, low: int, high: int) -> None:
    _need(low <= value <= high, f"{name} must be from {low} to {high}, not {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorConfig:
    """The systolic array: `rows` along K, `cols` along M; a root clock cycle is its cycle."""

    rows: int
    cols: int
    clock_mhz: int = 2400
    moving_max: int = 512  # columns of one MULTIPLY_MOVING

    def __post_init__(self) -> None:
        _power_of_two("tensor.rows", self.rows, 8, 128)
        _power_of_two("tensor.cols", self.cols, 8, 128)
        _within("tensor.clock_mhz", self.clock_mhz, 1, 10_000)
        _power_of_two("tensor.moving_max", self.moving_max, 8, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorConfig:
    """The vector engine; its clock is a rational part of the tensor clock."""

    clock_mhz: int = 1200
    exp_rate: int = 4  # results a lane a vector cycle

    def __post_init__(self) -> None:
        _within("vector.clock_mhz", self.clock_mhz, 1, 10_000)
        _power_of_two("vector.exp_rate", self.exp_rate, 1, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarConfig:
    """The scalar engine: one element a lane a scalar cycle; rows of the table of functions."""

    clock_mhz: int = 1200
    table_rows: int = 8192

    def __post_init__(self) -> None:
        _within("scalar.clock_mhz", self.clock_mhz, 1, 10_000)
        _power_of_two("scalar.table_rows", self.table_rows, 1024, 65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class SbufConfig:
    """SBUF: bytes of a partition, and banks; neighbouring 8-byte words lie in neighbouring banks."""

    partition_bytes: int
    banks: int = 4

    def __post_init__(self) -> None:
        _power_of_two("sbuf.banks", self.banks, 2, 16)
        _within("sbuf.partition_bytes", self.partition_bytes, 1024, 1 << 18)
        _need(
            self.partition_bytes % (8 * self.banks) == 0,
            f"sbuf.partition_bytes must be a multiple of 8 * sbuf.banks ({8 * self.banks}), "
            f"not {self.partition_bytes}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PsumConfig:
    """PSUM: banks of `bank_bytes` a partition; a bank does one read and one write a cycle."""

    banks: int = 8
    bank_bytes: int = 2048

    def __post_init__(self) -> None:
        _power_of_two("psum.banks", self.banks, 2, 16)
        _power_of_two("psum.bank_bytes", self.bank_bytes, 64, 16384)

    @property
    def partition_bytes(self) -> int:
        """Bytes of a partition."""
        return self.banks * self.bank_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaConfig:
    """DMA: movers that work at once, each on its own partitions, 16 bytes a cycle each."""

    engines: int
    rings: int = 4
    buffer_bytes: int = 8192  # read data a mover may have in flight
    burst_bytes: int = 1024  # longest AXI burst

    def __post_init__(self) -> None:
        _power_of_two("dma.engines", self.engines, 1, 16)
        _within("dma.rings", self.rings, 1, 16)
        _power_of_two("dma.buffer_bytes", self.buffer_bytes, 512, 65536)
        _power_of_two("dma.burst_bytes", self.burst_bytes, 128, 4096)
        _need(
            self.burst_bytes * 2 <= self.buffer_bytes,
            f"dma.burst_bytes must be at most half of dma.buffer_bytes ({self.buffer_bytes // 2}), "
            f"not {self.burst_bytes}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HbmConfig:
    """HBM behind AXI4: ports of `port_bytes`, bandwidth over all ports and both directions, latency."""

    ports: int
    port_bytes: int
    bytes_per_cycle: int
    latency_ns: int
    capacity_mib: int = 1024

    def __post_init__(self) -> None:
        _power_of_two("hbm.ports", self.ports, 1, 4)
        _power_of_two("hbm.port_bytes", self.port_bytes, 16, 128)
        _within("hbm.bytes_per_cycle", self.bytes_per_cycle, 1, 2 * self.ports * self.port_bytes)
        _within("hbm.latency_ns", self.latency_ns, 1, 10_000)
        _within("hbm.capacity_mib", self.capacity_mib, 1, 65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueConfig:
    """Instruction queues: instructions (and descriptors of a ring) fetched ahead, semaphores."""

    queue_depth: int = 16
    semaphores: int = 256

    def __post_init__(self) -> None:
        _power_of_two("issue.queue_depth", self.queue_depth, 2, 64)
        _power_of_two("issue.semaphores", self.semaphores, 16, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an architect would vary about one core."""

    name: str
    partitions: int
    tensor: TensorConfig
    sbuf: SbufConfig
    psum: PsumConfig = field(default_factory=PsumConfig)
    vector: VectorConfig = field(default_factory=VectorConfig)
    scalar: ScalarConfig = field(default_factory=ScalarConfig)
    dma: DmaConfig
    hbm: HbmConfig
    issue: IssueConfig = field(default_factory=IssueConfig)

    def __post_init__(self) -> None:
        # Folders are named after it, so it must not lead elsewhere.
        _need(
            re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}", self.name) is not None,
            f"name must be 1 to 64 of A to Z, a to z, 0 to 9, _ - and ., with no dot in front, not {self.name!r}",
        )
        _power_of_two("partitions", self.partitions, 8, 128)
        for side in ("rows", "cols"):
            size = getattr(self.tensor, side)
            _need(
                size <= self.partitions,
                f"tensor.{side} must be at most partitions ({self.partitions}), not {size}",
            )
        _need(
            self.dma.engines * 2 <= self.partitions,
            f"dma.engines must be at most half of partitions ({self.partitions // 2}), "
            f"not {self.dma.engines}",
        )
        _need(
            self.dma.engines >= self.hbm.ports,
            f"dma.engines must be at least hbm.ports ({self.hbm.ports}), not {self.dma.engines}",
        )
        _need(
            self.partitions // self.dma.engines <= self.partitions // 4,
            f"dma.engines must be at least 4 (one for each quadrant of partitions), "
            f"not {self.dma.engines}",
        )
        for engine in ("vector", "scalar"):
            mhz = getattr(self, engine).clock_mhz
            _need(
                mhz <= self.tensor.clock_mhz,
                f"{engine}.clock_mhz must be at most tensor.clock_mhz ({self.tensor.clock_mhz}), not {mhz}",
            )
        _need(
            self.tensor.moving_max * 4 <= self.psum.bank_bytes * self.psum.banks,
            f"tensor.moving_max must fit in a PSUM partition ({self.psum.partition_bytes // 4} "
            f"FP32 columns), not {self.tensor.moving_max}",
        )

    @property
    def latency_cycles(self) -> int:
        """HBM latency in tensor cycles, rounded up."""
        return -(-self.hbm.latency_ns * self.tensor.clock_mhz // 1000)

    def as_dict(self) -> dict[str, Any]:
        """All fields, nested, as plain values."""
        return dataclasses.asdict(self)

    @property
    def hash(self) -> str:
        """Twelve hex digits that name the values (not the name) of this configuration."""
        values = {k: v for k, v in self.as_dict().items() if k != "name"}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


NAMED: dict[str, Config] = {
    c.name: c
    for c in (
        Config(
            name="tiny",
            partitions=8,
            tensor=TensorConfig(rows=8, cols=8, moving_max=64),
            sbuf=SbufConfig(partition_bytes=8192, banks=4),
            psum=PsumConfig(banks=4, bank_bytes=256),
            dma=DmaConfig(engines=4, rings=2, buffer_bytes=1024, burst_bytes=256),
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
        Config(
            name="full",
            partitions=128,
            tensor=TensorConfig(rows=128, cols=128),
            sbuf=SbufConfig(partition_bytes=262144),
            dma=DmaConfig(engines=16, buffer_bytes=16384),
            hbm=HbmConfig(ports=2, port_bytes=128, bytes_per_cycle=255, latency_ns=200, capacity_mib=18432),
        ),
        Config(
            name="trn2",
            partitions=128,
            tensor=TensorConfig(rows=128, cols=128),
            sbuf=SbufConfig(partition_bytes=229376),
            vector=VectorConfig(clock_mhz=960, exp_rate=1),
            dma=DmaConfig(engines=16, buffer_bytes=16384),
            hbm=HbmConfig(ports=2, port_bytes=128, bytes_per_cycle=151, latency_ns=200, capacity_mib=12288),
        ),
    )
}


def named(name: str) -> Config:
    """A named configuration. ConfigError lists the names."""
    if name not in NAMED:
        raise ConfigError(f"there is no configuration {name!r}; the named ones are {', '.join(NAMED)}")
    return NAMED[name]


def _keys(cls: type) -> dict[str, Any]:
    return {f.name: f for f in dataclasses.fields(cls)}


def _replace(config: Config, changes: Mapping[str, Any], where: str) -> Config:
    """`config` with nested `changes`; unknown keys and wrong types end in a ConfigError."""
    new: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in _keys(Config):
            raise ConfigError(f"{where} names {key!r}, which is no field; fields are {', '.join(_keys(Config))}")
        current = getattr(config, key)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{where} sets {key} to {value!r}; set a field of it, as in {key}.FIELD")
            section: dict[str, Any] = {}
            for name, inner in cast(Mapping[str, Any], value).items():
                known = _keys(type(current))
                if name not in known:
                    raise ConfigError(
                        f"{where} names {key}.{name}, which is no field; fields of {key} are {', '.join(known)}"
                    )
                section[name] = _typed(f"{key}.{name}", inner, getattr(current, name))
            new[key] = dataclasses.replace(current, **section)  # type: ignore[type-var]
        else:
            new[key] = _typed(key, value, current)
    return dataclasses.replace(config, **new)


def _typed(name: str, value: Any, current: Any) -> Any:
    if isinstance(value, bool) or type(value) is not type(current):
        kind = {int: "a whole number", str: "a text"}[type(current)]
        raise ConfigError(f"{name} must be {kind}, not {value!r}")
    return value


def _parse_override(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"a setting is written section.key=value, not {text!r}")
    parts = key.strip().split(".")
    try:
        parsed: Any = int(value.strip().replace("_", ""), 0)
    except ValueError:
        parsed = value.strip()
    for part in reversed(parts):
        parsed = {part: parsed}
    return parsed


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if not isinstance(value, Mapping):
            into[key] = value
            continue
        section = cast(Mapping[str, Any], value)
        if isinstance(into.get(key), dict):
            _merge(into[key], section)
        else:
            into[key] = dict(section)


def load(source: str, overrides: Iterable[str] = ()) -> Config:
    """A configuration from a name or a TOML file, with `section.key=value` changes on top.

    Errors: ConfigError, one sentence. All changes are applied at once, so that their order is free.
    """
    changes: dict[str, Any] = {}
    where = "a setting"
    if source.endswith(".toml"):
        path = Path(source)
        try:
            table = tomllib.loads(path.read_text())
        except FileNotFoundError:
            raise ConfigError(f"there is no configuration file {source}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{source} cannot be read: {error}") from None
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{source} is not valid TOML: {error}") from None
        base = table.pop("base", None)
        if not isinstance(base, str):
            raise ConfigError(f'{source} needs a line base = "NAME"; the named ones are {", ".join(NAMED)}')
        config = named(base)
        table.setdefault("name", path.stem)
        changes, where = table, source
    else:
        config = named(source)
    for text in overrides:
        _merge(changes, _parse_override(text))
    return _replace(config, changes, where)
