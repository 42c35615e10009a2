"""verif/plan/testplan.toml: every row points at a bench and at tests that exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAN = tomllib.loads((ROOT / "verif" / "plan" / "testplan.toml").read_text())
STATUS = ("done", "partly", "planned")


@pytest.mark.parametrize("row", PLAN["feature"], ids=lambda r: r["name"])
def test_feature_is_checked_by_what_it_says(row: dict) -> None:
    assert set(row) <= {"name", "bench", "tests", "coverage", "status", "note"}, "unknown key in the row"
    assert row["status"] in STATUS, f"status is one of {', '.join(STATUS)}"
    assert row["tests"] or row["status"] == "planned", "a feature without tests is only planned"
    assert row["status"] == "done" or row.get("note"), "a row that is not done says what is missing"
    for bench in row.get("bench", []):
        assert (ROOT / bench).is_file(), f"{bench} does not exist"
    for test in row["tests"]:
        file, _, function = test.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{file} does not exist"
        if function:
            assert re.search(rf"^(async )?def {function}\(", path.read_text(), re.M), f"{file} has no {function}"
    text = "".join((ROOT / b).read_text() for b in row.get("bench", []))
    for name in row.get("coverage", []):
        assert name in text, f"no bench of the row has the coverage {name}"


def test_features_have_names_of_their_own() -> None:
    names = [row["name"] for row in PLAN["feature"]]
    assert len(names) == len(set(names))
