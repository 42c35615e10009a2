"""Words, numbers and limits that the C++ of links writes down, held against the contract."""

import re

from rtl.contract import link
from sim.toolchain import ROOT

TEXT = (ROOT / "sim" / "native" / "link_words.h").read_text()


def rows(macro: str) -> list[list[str]]:
    """The arguments of every X(...) in a macro of the header."""
    body = re.search(rf"#define {macro}\(X\)(.*?)\n\n", TEXT, re.S)
    assert body, macro
    found = [re.split(r",\s*", row) for row in re.findall(r"\bX\(([^)]*)\)", body[1])]
    assert len(found) > 10
    return found


def test_numbers() -> None:
    for name, value in rows("PLEXUS_NUMBERS"):
        assert int(value) == getattr(link, name), name


def test_fields() -> None:
    for word, field, at, bits in rows("PLEXUS_FIELDS"):
        table = getattr(link, word)
        assert int(at) == table.offset(field), f"{word}.{field}"
        assert int(bits) == next(f.width for f in table if f.name == field), f"{word}.{field}"


def test_members() -> None:
    for kind, member, value in rows("PLEXUS_MEMBERS"):
        assert int(value) == getattr(link, kind)[member], f"{kind}.{member}"
    states = {member for kind, member, _ in rows("PLEXUS_MEMBERS") if kind == "LinkState"}
    assert states == set(link.LinkState.__members__)


def test_codes() -> None:
    """What the C++ takes for granted about CRC and FEC."""
    assert (link.CRC_ORDER, link.CRC_POLYNOMIAL, link.CRC_FIRST_ROOT) == ("high_first", 0x12B, 1)
    assert link.FEC_POLYNOMIAL == 0x11D
