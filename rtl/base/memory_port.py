"""How engines and movers speak to SBUF and PSUM. Seen from the requester.

A request is accepted in a cycle with `valid & ready`; `ready` depends on the requests of the same
cycle, never on `data`. Read data are on the port in the next cycle (timing.SBUF_READ_CYCLES), with
`data_valid`, for one cycle: a requester asks only when it can take the answer. A write has committed
at the end of the cycle that accepts it: a read accepted in a later cycle sees it, one accepted in the
same cycle sees the old bytes.

Words are 8 bytes of each partition; `word` counts them from the start of a partition. The four
quadrants (P/4 partitions each) of SBUF have their own word address; a request is accepted for all
quadrants in its mask at once, or not at all. PSUM has one word address for all partitions; its words
hold two neighbouring FP32 elements.
"""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.contract.config import Config

__all__ = [
    "PsumAccumulateSignature",
    "PsumReadSignature",
    "PsumTransposeSignature",
    "PsumWriteSignature",
    "QUADRANTS",
    "SbufMoverSignature",
    "SbufReadSignature",
    "SbufWriteSignature",
    "psum_element_bits",
    "psum_word_bits",
    "sbuf_word_bits",
]

QUADRANTS = 4


def sbuf_word_bits(cfg: Config) -> int:
    """Bits of a word address in an SBUF partition."""
    return ceil_log2(cfg.sbuf.partition_bytes // 8)


def psum_element_bits(cfg: Config) -> int:
    """Bits of an FP32 element index in a PSUM partition; the bank is its upper part."""
    return ceil_log2(cfg.psum.partition_bytes // 4)


def psum_word_bits(cfg: Config) -> int:
    """Bits of a word address in a PSUM partition: an element's without the lowest."""
    return psum_element_bits(cfg) - 1


class SbufReadSignature(wiring.Signature):
    """An engine's read port: up to one word of every partition a cycle."""

    def __init__(self, cfg: Config):
        words = data.ArrayLayout(sbuf_word_bits(cfg), QUADRANTS)
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "quadrants": Out(QUADRANTS),
                "word": Out(words),
                "data": In(64 * cfg.partitions),  # partition p at bits 64p
                "data_valid": In(1),
            }
        )


class SbufWriteSignature(wiring.Signature):
    """An engine's write port: byte b of partition p is written if both masks have it."""

    def __init__(self, cfg: Config):
        words = data.ArrayLayout(sbuf_word_bits(cfg), QUADRANTS)
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "quadrants": Out(QUADRANTS),
                "word": Out(words),
                "data": Out(64 * cfg.partitions),
                "bytes": Out(8),
                "partitions": Out(cfg.partitions),
            }
        )


class SbufMoverSignature(wiring.Signature):
    """A DMA mover's port: 16 aligned bytes of one partition of its group each way a cycle.

    Group g holds partitions g*P/dma.engines and up; `lane` counts inside the group. Reads and writes
    are independent. `write_add` (DmaAdd): the bytes are added to what is there; those that are not COPY commit
    later, in the order in which they were accepted, and `write_done` pulses for each that had `write_last`.
    """

    def __init__(self, cfg: Config):
        lanes = ceil_log2(cfg.partitions // cfg.dma.engines)
        pair = sbuf_word_bits(cfg) - 1
        super().__init__(
            {
                "read_valid": Out(1),
                "read_ready": In(1),
                "read_lane": Out(lanes),
                "read_pair": Out(pair),  # 16-byte unit in the partition
                "read_data": In(128),
                "read_data_valid": In(1),
                "write_valid": Out(1),
                "write_ready": In(1),
                "write_lane": Out(lanes),
                "write_pair": Out(pair),
                "write_data": Out(128),
                "write_bytes": Out(16),
                "write_add": Out(2),
                "write_last": Out(1),
                "write_done": In(1),
            }
        )


class PsumReadSignature(wiring.Signature):
    """Read a word, two FP32 elements, of every partition a cycle."""

    def __init__(self, cfg: Config):
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "word": Out(psum_word_bits(cfg)),
                "data": In(64 * cfg.partitions),  # partition p at bits 64p
                "data_valid": In(1),
            }
        )


class PsumWriteSignature(wiring.Signature):
    """An engine's write port: whole FP32 elements; `bytes` lets four of them at a time through.

    A sum of the tensor engine goes first: a write to the bank in which it commits is refused.
    """

    def __init__(self, cfg: Config):
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "word": Out(psum_word_bits(cfg)),
                "data": Out(64 * cfg.partitions),
                "bytes": Out(8),
                "partitions": Out(cfg.partitions),
            }
        )


class PsumAccumulateSignature(wiring.Signature):
    """Write a row of sums, or add it to what is there. Never refused: it goes before all readers.

    `rounding`: what is written is rounded to BF16 before, as isa.Rounding says; `random`: the row's word of random bits
    (rtl.numeric.fp32.round_bits).

    The row has committed timing.PSUM_ADD_CYCLES after the cycle with `valid`, whether it adds or not.
    No element may be written again within that time. Rows of different groups come to different banks.
    `lost`, with valid: this one met another in its bank and is not written.
    """

    def __init__(self, cfg: Config):
        super().__init__(
            {
                "valid": Out(1),
                "element": Out(psum_element_bits(cfg)),
                "accumulate": Out(1),
                "partitions": Out(cfg.partitions),
                "data": Out(32 * cfg.partitions),
                "rounding": Out(2),
                "random": Out(32),
                "lost": In(1),
            }
        )


class PsumTransposeSignature(wiring.Signature):
    """Write a row of bits as they are, an element of every partition. Never refused: it goes before engines' writes.

    It has committed at the end of the cycle with `valid`. No sum commits in its bank in that cycle.
    """

    def __init__(self, cfg: Config):
        super().__init__(
            {
                "valid": Out(1),
                "element": Out(psum_element_bits(cfg)),
                "partitions": Out(cfg.partitions),
                "data": Out(32 * cfg.partitions),
            }
        )
