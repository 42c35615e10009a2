"""Programs with loops: the example of the page, and how few words products have."""

from pathlib import Path

import numpy as np
import pytest

from firmware.image import build_image
from firmware.workloads import find_workload
from rtl.contract.config import named
from verif.golden.machine import GoldenMachine

CFG = named("tiny")
P = CFG.partitions


def test_the_example_of_the_page_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text().partition("## Loops\n")[2]
    code, says = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "text"))
    exec(compile(code, "example", "exec"), {})
    assert capsys.readouterr().out == says


@pytest.mark.parametrize("resident", [True, False])
def test_gemm_with_loops_has_few_words(resident: bool) -> None:
    sizes = {"m": 8 * P, "k": 4 * P, "n": 40, "resident": resident}
    plain, looping = (find_workload("gemm").build(CFG, {**sizes, "loop": loop}) for loop in (False, True))
    before, after = (sum(count for _, count in build_image(one).queues.values()) for one in (plain, looping))
    assert after < before / (2 if resident else 1)
    found = []
    for one in (plain, looping):
        machine = GoldenMachine(CFG)
        machine.load(build_image(one))
        found += machine.run().outputs.values()
    assert len(found) == 2 and np.array_equal(*found)
