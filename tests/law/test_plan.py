"""verif/plan/testplan.toml: every row points at a bench or at tests, and they exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAN = tomllib.loads((ROOT / "verif" / "plan" / "testplan.toml").read_text())
KEYS = {"name", "bench", "tests", "coverage", "coverage_reason", "status", "note"}
STATUS = ("done", "partly", "planned")


@pytest.mark.parametrize("row", PLAN["feature"], ids=lambda r: r["name"])
def test_feature_is_checked_by_what_it_says(row: dict) -> None:
    assert set(row) <= KEYS, f"keys of a row are {', '.join(sorted(KEYS))}"
    assert row["status"] in STATUS, f"status is one of {', '.join(STATUS)}"
    assert row.get("tests") or row.get("bench") or row["status"] == "planned", "a feature without tests is only planned"
    assert row["status"] == "done" or row.get("note"), "a row that is not done says what is missing"
    for bench in row.get("bench", []):
        assert (ROOT / bench).is_file(), f"{bench} does not exist"
    for test in row.get("tests", []):
        file, _, function = test.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{file} does not exist"
        if function:
            assert re.search(rf"^(async )?def {function}\(", path.read_text(), re.M), f"{file} has no {function}"
    assert bool(row.get("coverage")) != bool(row.get("coverage_reason")), "functional coverage, or why there is none"
    assert not row.get("bench") or row.get("coverage"), "a feature with a bench has its coverage"


def test_features_have_names_of_their_own() -> None:
    names = [row["name"] for row in PLAN["feature"]]
    assert len(names) == len(set(names))
