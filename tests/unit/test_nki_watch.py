"""NKI kernels that go on without a call of nki."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import plexus
from firmware.nki.watch import watched
from sim.cli import main

X = np.zeros((8, 8), np.float32)
HEAD = "import time\nimport nki\nimport nki.language as nl\n\n\ndef f(x):\n"
ENDLESS = {
    "plain": "    while True:\n        pass\n",
    "with its own except": """    while True:
        try:
            [n for n in range(9)]
        except Exception:
            pass
""",
    "behind calls": "    y = nl.load(x)\n    n = 0\n    while y is not None:\n        n += 1\n",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_a_loop_for_ever_ends_in_a_sentence(tmp_path: Path, body: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + body)
    with pytest.raises(plexus.Error, match="^kernels.py:[0-9]+: the kernel has called nothing of nki for 0.3 s"):
        plexus.nki.run(f"{path}:f", X, config="tiny", device="golden", silence=0.3)
    assert "nki watch" not in {thread.name for thread in _after(1.0)}


def _after(seconds: float) -> list[threading.Thread]:
    """Threads that are left, after some time if need be."""
    end = time.monotonic() + seconds
    while any(thread.name == "nki watch" for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
    return threading.enumerate()


def test_a_kernel_that_calls_now_and_then_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        f"{HEAD}    out = nl.ndarray((8, 8), x.dtype, buffer=nl.shared_hbm)\n    for i in range(6):\n"
        "        end = time.monotonic() + 0.2\n        while time.monotonic() < end:\n            pass\n"
        "        nl.store(out, nl.load(x))\n    return out\n"
    )
    found = plexus.nki.run(f"{path}:f", X, config="tiny", device="golden", silence=0.8)
    assert np.array_equal(found.output, X)


def test_what_is_not_the_users_line_is_left_alone() -> None:
    """As in a long import: the innermost frame is this repository's, or a package's."""
    with watched(int, 0.1):
        assert not threading.Event().wait(0.5)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, given = tmp_path / "kernels.py", tmp_path / "in.npz"
    path.write_text(HEAD + ENDLESS["plain"])
    np.savez(given, x=X)
    words = ["nki", f"{path}:f", "--in", str(given), "--config", "tiny", "--device", "golden", "--silence"]
    assert main([*words, "0.2"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("plexus: kernels.py:") and "--silence" in error and error.count("\n") == 1
    assert main([*words, "0"]) == 2
    assert capsys.readouterr().err == "plexus: silence is a number of seconds above 0, not 0.0\n"
