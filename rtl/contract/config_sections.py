"""Sections of a configuration, each refused in a sentence when it makes no sense by itself."""

from dataclasses import dataclass

from rtl.contract.config_fields import ConfigError, Role, check, flag, need, number, numbers
from rtl.contract.gpsimd import LOCAL_BYTES, LOCAL_BYTES_MAX, LOCAL_BYTES_MIN

__all__ = [
    "ConfigError",
    "DMA_CLASSES",
    "DmaConfig",
    "GpsimdConfig",
    "HbmConfig",
    "IssueConfig",
    "PsumConfig",
    "SbufConfig",
    "ScalarConfig",
    "TensorConfig",
    "VectorConfig",
    "need",
]

_MHZ = 10_000
DMA_CLASSES = 4
"""Traffic classes of descriptors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorConfig:
    """The systolic array: `rows` along K, `cols` along M; a root clock cycle is its cycle."""

    rows: int = number("PEs along K, the contraction axis", 8, 128, unit="PEs", of_two=True, also="at most partitions")
    cols: int = number("PEs along M, the output axis", 8, 128, unit="PEs", of_two=True, also="at most partitions")
    clock_mhz: int = number("root clock, in whose cycles a run is measured", 1, _MHZ, 2400, unit="MHz", role=Role.CLOCK)
    moving_max: int = number(
        "columns of one MULTIPLY_MOVING",
        8,
        4096,
        512,
        unit="columns",
        of_two=True,
        also="at most the FP32 columns of a PSUM partition",
        role=Role.ROOM,
    )
    mx: bool = flag("sums of two and of four products: FP8 at double rate, MX", True, role=Role.ROOM)
    nvfp4: bool = flag("E4M3FN scales, blocks of 16", False, also="needs tensor.mx", role=Role.ROOM)
    sparsity: bool = flag("structured sparsity: 4:16 to 1:2", True, role=Role.ROOM)
    row_groups: int = number(
        "parts of the rows that may run different matmuls, at most; each has at least 8 rows", 1, 4, 4, of_two=True
    )

    def __post_init__(self) -> None:
        check("tensor", self)
        need(self.mx or not self.nvfp4, "tensor.nvfp4 needs tensor.mx")

    @property
    def groups(self) -> int:
        """Row groups that there are: each has at least 8 rows."""
        return min(self.row_groups, self.rows // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorConfig:
    """The vector engine; its clock is a rational part of the tensor clock."""

    clock_mhz: int = number(
        "clock of the vector engine", 1, _MHZ, 1200, unit="MHz", also="at most tensor.clock_mhz", role=Role.CLOCK
    )
    exp_rate: int = number(
        "results of exp a lane a vector cycle", 1, 4, 4, unit="elements a cycle", of_two=True, role=Role.KNOB
    )

    def __post_init__(self) -> None:
        check("vector", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarConfig:
    """The scalar engine: one element or pair a lane a scalar cycle; rows of the table of functions."""

    clock_mhz: int = number(
        "clock of the scalar engine", 1, _MHZ, 1200, unit="MHz", also="at most tensor.clock_mhz", role=Role.CLOCK
    )
    table_rows: int = number(
        "rows of the table of functions", 1024, 65536, 8192, unit="rows", of_two=True, role=Role.ROOM
    )

    def __post_init__(self) -> None:
        check("scalar", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpsimdConfig:
    """The programmable engine. How many cores it has follows from the partitions: rtl.contract.gpsimd.cores."""

    enabled: bool = flag("whether there is one; without it queue gpsimd takes what every queue takes", True)
    clock_mhz: int = number(
        "clock of the GPSIMD engine", 1, _MHZ, 1200, unit="MHz", also="at most tensor.clock_mhz", role=Role.CLOCK
    )
    local_bytes: int = number(
        "local memory of a core", LOCAL_BYTES_MIN, LOCAL_BYTES_MAX, LOCAL_BYTES, unit="bytes", of_two=True
    )
    vectors: bool = flag("whether cores have vectors, Zve32x; a model with them takes longer to build", True)

    def __post_init__(self) -> None:
        check("gpsimd", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SbufConfig:
    """SBUF: bytes of a partition, and banks; neighbouring 8-byte words lie in neighbouring banks."""

    partition_bytes: int = number(
        "size of an SBUF partition", 1024, 1 << 18, unit="bytes", also="a multiple of 8 * sbuf.banks", role=Role.ROOM
    )
    banks: int = number("banks of SBUF; neighbouring 8-byte words lie in neighbouring ones", 2, 16, 4, of_two=True)
    adders: bool = flag("whether what the DMA brings can be added to what is there", True, role=Role.ROOM)

    def __post_init__(self) -> None:
        check("sbuf", self)
        need(
            self.partition_bytes % (8 * self.banks) == 0,
            f"sbuf.partition_bytes must be a multiple of 8 * sbuf.banks ({8 * self.banks}), not {self.partition_bytes}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PsumConfig:
    """PSUM: banks of `bank_bytes` a partition; a bank does one read and one write a cycle."""

    banks: int = number("banks of PSUM; each does one read and one write a cycle", 2, 16, 8, of_two=True)
    bank_bytes: int = number("size of a PSUM bank on a partition", 64, 16384, 2048, unit="bytes", of_two=True)

    def __post_init__(self) -> None:
        check("psum", self)

    @property
    def partition_bytes(self) -> int:
        """Bytes of a partition."""
        return self.banks * self.bank_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaConfig:
    """DMA: movers that work at once, each on its own partitions, 16 bytes a cycle each."""

    engines: int = number(
        "movers that work at once, 16 bytes a cycle each",
        1,
        16,
        unit="movers",
        of_two=True,
        also="at least 4 and hbm.ports, at most half of partitions",
    )
    rings: int = number("rings of descriptors", 1, 16, 4, unit="rings", role=Role.ROOM)
    ring_depth: int = number(
        "descriptors of a ring that are fetched ahead, and as many under way",
        2,
        64,
        32,
        unit="descriptors",
        of_two=True,
    )
    buffer_bytes: int = number(
        "read data that a mover may have in flight", 512, 65536, 8192, unit="bytes", of_two=True, role=Role.KNOB
    )
    burst_bytes: int = number(
        "longest AXI burst",
        128,
        4096,
        1024,
        unit="bytes",
        of_two=True,
        also="at most half of dma.buffer_bytes",
        role=Role.KNOB,
    )

    classes: int = number(
        "traffic classes of descriptors, each with queues of its own",
        1,
        DMA_CLASSES,
        DMA_CLASSES,
        unit="classes",
        of_two=True,
        role=Role.ROOM,
    )
    link_movers: int = number(
        "movers each way between partitions and packets to other cores, 16 bytes a cycle each",
        1,
        4,
        2,
        unit="movers",
        of_two=True,
    )
    indirect: bool = flag("whether indices in SBUF can choose the rows of a descriptor", True, role=Role.ROOM)
    weights: tuple[int, ...] = numbers("shares of a mover, by class of descriptors", DMA_CLASSES, 1, 64, (8, 4, 2, 1))
    strict_class: int = number(
        "class that goes before the others; -1 none", -1, DMA_CLASSES - 1, -1, also="less than dma.classes"
    )
    strict_cap: int = number(
        "parts of 64 that the strict class has while others wait; 64 is no cap", 1, 64, 16, unit="parts"
    )
    priority: bool = flag("the lowest class goes first, always; dma.weights and dma.strict_class mean nothing", False)
    slice_bytes: int = number(
        "longest piece of a row, between two of which another class may go", 512, 4096, 512, unit="bytes", of_two=True
    )

    def __post_init__(self) -> None:
        check("dma", self)
        need(
            self.burst_bytes * 2 <= self.buffer_bytes,
            f"dma.burst_bytes must be at most half of dma.buffer_bytes ({self.buffer_bytes // 2}), "
            f"not {self.burst_bytes}",
        )
        need(
            self.strict_class < self.classes,
            f"dma.strict_class must be less than dma.classes ({self.classes}), not {self.strict_class}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HbmConfig:
    """HBM behind AXI4: ports of `port_bytes`, bandwidth over all ports and both directions, latency."""

    ports: int = number("AXI4 ports to HBM", 1, 4, unit="ports", of_two=True, also="at most dma.engines")
    port_bytes: int = number("width of a port", 16, 128, unit="bytes", of_two=True)
    bytes_per_cycle: int = number(
        "bandwidth of HBM over all ports and both directions, a tensor cycle",
        1,
        1024,
        unit="bytes a cycle",
        also="at most 2 * hbm.ports * hbm.port_bytes",
        role=Role.HOST,
    )
    latency_ns: int = number("from a read's address to its first data", 1, 10_000, unit="ns", role=Role.HOST)
    capacity_mib: int = number("size of HBM", 1, 65536, 1024, unit="MiB", role=Role.ROOM)

    def __post_init__(self) -> None:
        check("hbm", self)
        most = 2 * self.ports * self.port_bytes
        need(
            self.bytes_per_cycle <= most,
            f"hbm.bytes_per_cycle must be from 1 to {most}, not {self.bytes_per_cycle}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueConfig:
    """Instruction queues: instructions fetched ahead, semaphores."""

    queue_depth: int = number(
        "instructions that a queue fetches ahead", 2, 64, 16, unit="instructions", of_two=True, role=Role.KNOB
    )
    semaphores: int = number("semaphores of the core", 16, 256, 256, unit="semaphores", of_two=True, role=Role.ROOM)

    def __post_init__(self) -> None:
        check("issue", self)
