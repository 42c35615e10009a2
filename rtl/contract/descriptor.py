"""DMA descriptors: 128 bytes in HBM, or the first 704 bits of them in an instruction (isa.COPY_AT). docs/dma.md."""

from enum import IntEnum

from rtl.contract.words import Field, Word

__all__ = ["DESCRIPTOR", "DmaAdd", "Indirect"]


class DmaAdd(IntEnum):
    """What a descriptor does with the bytes at its destination. All but COPY: little-endian elements in SBUF."""

    COPY = 0  # overwrites them
    FP32 = 1  # FP32 sum
    BF16 = 2  # FP32 sum of two BF16, rounded to BF16 to nearest even
    INT32 = 3  # sum modulo 2^32

    @property
    def element_bytes(self) -> int:
        """Addresses, steps and lengths of rows are multiples of it."""
        return (1, 4, 2, 4)[self]


class Indirect(IntEnum):
    """Which side of a descriptor is a table, of whose rows indices in SBUF choose one after the other."""

    NONE = 0
    SOURCE = 1  # gather
    DESTINATION = 2  # scatter


DESCRIPTOR = Word(
    "descriptor",
    1024,
    (
        Field("source", 64, "memmap.ADDRESS of the first byte"),
        Field("destination", 64),
        Field("row_bytes", 32, "contiguous bytes on both sides, 1 to 2^18"),
        Field("class_", 3, "traffic class, 0 to 3"),
        Field("add", 2, "DmaAdd: to what is at the destination, in SBUF"),
        Field("indirect", 2, "Indirect; if NONE all fields of indices and `table_rows` are 0"),
        Field("index_skips", 1, "a row whose index is none of the table is left out; else a fault, BAD_INDEX"),
        Field("index_down", 1, "indices of dimension 0 lie in successive partitions, those of 1 in successive words"),
        Field("index", 23, "place of the first index in SBUF: partition * 2^16 + byte / 4"),
        Field("count0", 32, "rows along the innermost outer dimension, at least 1"),
        Field("source_step0", 48, "bytes; 0 broadcasts; of a table from one of its rows to the next", signed=True),
        Field("destination_step0", 48, signed=True),
        Field("count1", 32),
        Field("source_step1", 48, signed=True),
        Field("destination_step1", 48, signed=True),
        Field("count2", 32, "1 if there are indices"),
        Field("source_step2", 48, signed=True),
        Field("destination_step2", 48, signed=True),
        Field("signal_address", 64, "address in a semaphore space: index * 4"),
        Field("signal_update", 4, "Update"),
        Field("table_rows", 28, "rows of the table: an index is less"),
        Field("signal_value", 32, signed=True),
    ),
)
