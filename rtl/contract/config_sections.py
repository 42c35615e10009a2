"""Sections of a configuration, each refused in a sentence when it makes no sense by itself."""

from dataclasses import dataclass

__all__ = [
    "ConfigError",
    "DmaConfig",
    "HbmConfig",
    "IssueConfig",
    "PsumConfig",
    "SbufConfig",
    "ScalarConfig",
    "TensorConfig",
    "VectorConfig",
    "need",
    "power_of_two",
    "within",
]


class ConfigError(ValueError):
    """A configuration that makes no sense; the text is one sentence with the value and the rule."""


def need(ok: bool, sentence: str) -> None:
    """ConfigError with this sentence unless `ok`."""
    if not ok:
        raise ConfigError(sentence)


def power_of_two(name: str, value: int, low: int, high: int) -> None:
    """ConfigError unless the value of `name` is a power of two in this range."""
    need(
        value & (value - 1) == 0 and low <= value <= high,
        f"{name} must be a power of two from {low} to {high}, not {value}",
    )


def within(name: str, value: int, low: int, high: int) -> None:
    """ConfigError unless the value of `name` is in this range."""
    need(low <= value <= high, f"{name} must be from {low} to {high}, not {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorConfig:
    """The systolic array: `rows` along K, `cols` along M; a root clock cycle is its cycle."""

    rows: int
    cols: int
    clock_mhz: int = 2400
    moving_max: int = 512  # columns of one MULTIPLY_MOVING
    mx: bool = True  # sums of two and of four products: FP8 at double rate, MX
    nvfp4: bool = False  # E4M3FN scales, blocks of 16
    sparsity: bool = True  # structured sparsity: 4:16 to 1:2
    row_groups: int = 4  # parts of the rows that may run different matmuls, at most; see `groups`

    def __post_init__(self) -> None:
        power_of_two("tensor.rows", self.rows, 8, 128)
        power_of_two("tensor.cols", self.cols, 8, 128)
        power_of_two("tensor.row_groups", self.row_groups, 1, 4)
        within("tensor.clock_mhz", self.clock_mhz, 1, 10_000)
        power_of_two("tensor.moving_max", self.moving_max, 8, 4096)
        need(self.mx or not self.nvfp4, "tensor.nvfp4 needs tensor.mx")

    @property
    def groups(self) -> int:
        """Row groups that there are: each has at least 8 rows."""
        return min(self.row_groups, self.rows // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorConfig:
    """The vector engine; its clock is a rational part of the tensor clock."""

    clock_mhz: int = 1200
    exp_rate: int = 4  # results a lane a vector cycle

    def __post_init__(self) -> None:
        within("vector.clock_mhz", self.clock_mhz, 1, 10_000)
        power_of_two("vector.exp_rate", self.exp_rate, 1, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarConfig:
    """The scalar engine: one element a lane a scalar cycle; rows of the table of functions."""

    clock_mhz: int = 1200
    table_rows: int = 8192

    def __post_init__(self) -> None:
        within("scalar.clock_mhz", self.clock_mhz, 1, 10_000)
        power_of_two("scalar.table_rows", self.table_rows, 1024, 65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class SbufConfig:
    """SBUF: bytes of a partition, and banks; neighbouring 8-byte words lie in neighbouring banks."""

    partition_bytes: int
    banks: int = 4

    def __post_init__(self) -> None:
        power_of_two("sbuf.banks", self.banks, 2, 16)
        within("sbuf.partition_bytes", self.partition_bytes, 1024, 1 << 18)
        need(
            self.partition_bytes % (8 * self.banks) == 0,
            f"sbuf.partition_bytes must be a multiple of 8 * sbuf.banks ({8 * self.banks}), not {self.partition_bytes}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PsumConfig:
    """PSUM: banks of `bank_bytes` a partition; a bank does one read and one write a cycle."""

    banks: int = 8
    bank_bytes: int = 2048

    def __post_init__(self) -> None:
        power_of_two("psum.banks", self.banks, 2, 16)
        power_of_two("psum.bank_bytes", self.bank_bytes, 64, 16384)

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
        power_of_two("dma.engines", self.engines, 1, 16)
        within("dma.rings", self.rings, 1, 16)
        power_of_two("dma.buffer_bytes", self.buffer_bytes, 512, 65536)
        power_of_two("dma.burst_bytes", self.burst_bytes, 128, 4096)
        need(
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
        power_of_two("hbm.ports", self.ports, 1, 4)
        power_of_two("hbm.port_bytes", self.port_bytes, 16, 128)
        within("hbm.bytes_per_cycle", self.bytes_per_cycle, 1, 2 * self.ports * self.port_bytes)
        within("hbm.latency_ns", self.latency_ns, 1, 10_000)
        within("hbm.capacity_mib", self.capacity_mib, 1, 65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueConfig:
    """Instruction queues: instructions (and descriptors of a ring) fetched ahead, semaphores."""

    queue_depth: int = 16
    semaphores: int = 256

    def __post_init__(self) -> None:
        power_of_two("issue.queue_depth", self.queue_depth, 2, 64)
        power_of_two("issue.semaphores", self.semaphores, 16, 256)
