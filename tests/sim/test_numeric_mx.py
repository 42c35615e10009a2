"""MX dot products: every pair of elements, many rows, and the door."""

import numpy as np
import pytest

from rtl.contract.config import named
from sim.errors import PlexusError
from sim.evaluate import evaluate
from verif.checks.mx_dot import MAIN_PAIRS, OTHER_PAIRS, every_pair, random_rows
from verif.golden.mx import mx_dot

pytestmark = pytest.mark.sim

ROWS = 200_000


@pytest.mark.parametrize(("fmt_a", "fmt_b", "scale_fmt"), MAIN_PAIRS + OTHER_PAIRS)
def test_rows_of_two_formats(fmt_a: str, fmt_b: str, scale_fmt: str) -> None:
    count = ROWS if (fmt_a, fmt_b, scale_fmt) in MAIN_PAIRS else ROWS // 4
    assert list(random_rows(count, fmt_a, fmt_b, scale_fmt, seed=3))[-1] == (count, 0)


@pytest.mark.parametrize(("fmt_a", "fmt_b"), sorted({(a, b) for a, b, _ in MAIN_PAIRS + OTHER_PAIRS}))
def test_every_pair_of_elements(fmt_a: str, fmt_b: str) -> None:
    assert every_pair(fmt_a, fmt_b) == (1 << 18, 0)


def given(**change: np.ndarray) -> dict[str, np.ndarray]:
    """Three rows for the door, with some of it changed."""
    rows = {
        "a": np.array([[0x38, 0xB8, 0x40, 0x00], [0x7E, 0x7E, 0x7E, 0x7E], [0x7F, 0, 0, 0]], np.uint8),
        "b": np.array([[0x38, 0x38, 0x38, 0x38]], np.uint8),
        "sa": np.array([127, 130, 127], np.uint8),
        "sb": np.array([128], np.uint8),
        "acc": np.array([0x3F800000], np.uint32),
        "fmt_a": np.array("e4m3fn"),
        "fmt_b": np.array("e4m3fn"),
    }
    return rows | change


def test_door_broadcasts_and_scales() -> None:
    out = evaluate("mx_dot", given(), named("tiny"))["out"]
    want = np.array([2 * 2 + 1, 4 * 448 * 16 + 1], np.float32).view(np.uint32).tolist()
    assert out.tolist() == [*want, 0x7FC00000]
    nvfp4 = given(
        scale_fmt=np.array("e4m3fn"), sa=np.array([0x38, 0xB8, 0x30], np.uint8), sb=np.array([0x40], np.uint8)
    )
    out = evaluate("mx_dot", nvfp4, named("tiny"))["out"]
    want = np.array([2 * 2 + 1, -4 * 448 * 2 + 1], np.float32).view(np.uint32).tolist()
    assert out.tolist() == [*want, 0x7FC00000]


def test_door_takes_legacy_e4m3_on_both_sides_or_with_e5m2() -> None:
    for fmt_b in ("e4m3", "e5m2", "e2m1"):
        change = {"fmt_a": np.array("e4m3"), "fmt_b": np.array(fmt_b)}
        out = evaluate("mx_dot", given(**change), named("tiny"))["out"]
        rows = given()
        wanted = mx_dot(rows["a"], rows["b"], rows["sa"], rows["sb"], rows["acc"], "e4m3", fmt_b)
        assert np.array_equal(out, wanted)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"fmt_a": np.array("e4m3")}, "e4m3 and e4m3fn are not mixed"),
        ({"fmt_b": np.array("e4m3")}, "e4m3 and e4m3fn are not mixed"),
        ({"fmt_b": np.array("bf16")}, "fmt_b must be one of"),
        ({"scale_fmt": np.array("e5m2")}, "scale_fmt must be one of e8m0, e4m3fn"),
        ({"a": np.zeros((3, 3), np.uint8)}, "a must have the shape"),
        ({"a": np.zeros(3, np.uint8)}, "a must have the shape"),
        ({"sa": np.zeros(2, np.uint8)}, "sa has 2 elements"),
        ({"acc": np.zeros(3, np.float32)}, "acc must hold bit patterns as uint32"),
    ],
)
def test_wrong_rows_get_a_sentence(change: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(PlexusError, match=says) as error:
        evaluate("mx_dot", given(**change), named("tiny"))
    assert "\n" not in str(error.value)
