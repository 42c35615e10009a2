"""The soak of the codec, in small."""

from verif.checks.codec_soak import soak


def test_no_damaged_flit_is_accepted() -> None:
    total, right, altered = soak(50_000, seed=3)
    assert total == 50_000 and altered == 0
    assert 0 < right < total
