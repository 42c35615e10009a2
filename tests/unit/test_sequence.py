"""Tickets: 16 bits in hardware, whole numbers in records and logs."""

import numpy as np
import pytest

from rtl.contract.memmap import QueueRegister, RingRegister
from sim.native.library import RETIRED, whole_sequence, whole_sequences


@pytest.mark.parametrize("sequence", [0, 1, 65_535, 65_536, 65_537, 70_000, 98_303, 98_304, 131_071, 131_072, 1 << 32])
@pytest.mark.parametrize("behind", [-16, -1, 0, 1, 16])
def test_number_of_a_fault_is_found_beside_what_has_retired(sequence: int, behind: int) -> None:
    assert whole_sequence(sequence % 65_536, max(0, sequence - behind)) == sequence


def test_queues_and_rings_count_at_the_same_place() -> None:
    assert QueueRegister.RETIRED.value == RingRegister.COMPLETED.value


def test_logs_of_several_queues_count_on() -> None:
    counts = {0: 140_000, 3: 70_000, 4: 5}
    parts = []
    for queue, count in counts.items():
        part = np.zeros(count, RETIRED)
        part["queue"], part["sequence"] = queue, np.arange(count)
        part["cycle"] = np.sort(np.random.default_rng(queue).integers(0, 1 << 20, count))
        parts.append(part)
    log = np.concatenate(parts)
    log = log[np.argsort(log["cycle"], kind="stable")]
    short = log.copy()
    short["sequence"] %= 65_536
    assert np.array_equal(whole_sequences(short), log)
    assert len(whole_sequences(log[:0])) == 0
