"""Bins of a Coverage outside a bench."""

import pytest

from verif.checks.coverage import Coverage


def test_a_bin_that_was_never_hit_is_an_error() -> None:
    cover = Coverage("unit", ["a", "b"])
    cover.hit("a")
    with pytest.raises(AssertionError, match="coverage unit: never hit: b"):
        cover.require_all()
    cover.when(True, "b")
    cover.require_all()


def test_what_a_configuration_cannot_show_is_not_asked_for_and_not_counted() -> None:
    cover = Coverage("unit", ["a", "b", "c"])
    cover.hit("a")
    cover.rule_out(True, "a", "b")
    cover.rule_out(False, "c")
    assert cover.hits == {"a": 1, "c": 0}
    with pytest.raises(AssertionError, match="never hit: c"):
        cover.require_all()
    with pytest.raises(KeyError):
        cover.hit("b")
