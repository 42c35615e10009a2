"""Lanes of the link: markers, which physical lane carries what, scrambler, limits. docs/lanes.md explains them.

Byte i of a flit travels on logical lane i mod w (w: lanes in use), 8 bytes of a lane in a word, first byte lowest.
Sources: the decided protocol of this project; the polynomial is that of the first two generations of PCI Express
(public: seed 0xffff gives ff 17 c0 14 b2 e7 02 82 ...).
"""

from rtl.contract.words import Field, Word

__all__ = [
    "ALIGN_MARKERS",
    "CALL_FLITS",
    "LANE_WORD_BYTES",
    "MARKER",
    "MARKER_CHECK_POLYNOMIAL",
    "MARKER_SYNC",
    "MISSES_DEAD",
    "MISSES_OF",
    "NO_LANE",
    "PHYSICAL_LANES_MAX",
    "QUIET_FLITS",
    "SCRAMBLER_BITS",
    "SCRAMBLER_TAPS",
    "VERSIONS",
    "WEAK_RATIO",
    "WIDTHS",
    "scrambler_seed",
]

LANE_WORD_BYTES = 8
PHYSICAL_LANES_MAX = 18
WIDTHS = (1, 2, 4, 8, 16)
"""Lanes that may be in use; counts divisible by 3 would put neighbours of a lane into one FEC group."""

NO_LANE = 31
"""Logical lane of a physical one that carries nothing but markers."""
VERSIONS = 64

MARKER_SYNC = 0x1ACF
MARKER_CHECK_POLYNOMIAL = 0x07
"""x^8+x^2+x+1 over bits 0 to 55, bit 55 first, start 0."""

MARKER = Word(
    "marker",
    64,
    (
        Field("sync", 16, "0x1acf"),
        Field("physical", 5, "this lane"),
        Field("logical", 5, "what it carries from here on; 31 nothing"),
        Field("mask", PHYSICAL_LANES_MAX, "physical lanes that this end receives well; 0 nothing known yet"),
        Field("version", 6, "of the map; one more with each change"),
        Field("width", 3, "lanes in use from here on, as a power of two"),
        Field("more", 1, "the next word is a marker too"),
        Field("here", 1, "this end receives its partner's markers"),
        Field("toggle", 1, "the other value in each marker: a lane that repeats itself is found"),
        Field("check", 8, "CRC of the bits below"),
    ),
)
"""In clear on every physical lane in the same cycle, before the first flit and after every MARKER_INTERVAL_FLITS."""

SCRAMBLER_BITS = 16
SCRAMBLER_TAPS = (5, 4, 3, 0)
"""x^16+x^5+x^4+x^3+1: a step shifts up, bit 15 leaves and is added at these places. It is added to the data, lowest bit
of a byte first, 64 steps a word, and starts again after each marker."""


def scrambler_seed(physical: int) -> int:
    """What the register of a physical lane holds at the first bit after a marker."""
    return physical + 1


MISSES_DEAD, MISSES_OF = 2, 4
"""A lane is dead if so many of its last so many markers were missing or did not agree with the others."""
WEAK_RATIO = 4
"""Corrections single a lane out if it has so many times those of each of at least half of the lanes in use."""
ALIGN_MARKERS = 16
"""Markers back to back that an end receives before it says `here`, and again before it leaves ALIGN."""
QUIET_FLITS = 64
"""Flit times without a beat or a marker after which an end goes to ALIGN."""
CALL_FLITS = 512
"""Flit times of markers alone after which an end that left ALIGN goes back to it: twice the longest round trip."""
