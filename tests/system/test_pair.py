"""Two whole cores that exchange tensors and semaphores."""

import pytest

from verif.launch import must_pass

pytestmark = pytest.mark.sim


def test_two_cores_exchange_tensors() -> None:
    must_pass("core_pair", "verif.benches.core.bench_pair", 1, planted=False)
