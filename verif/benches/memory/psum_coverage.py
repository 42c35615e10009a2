"""What the bench of PSUM must have met."""

from verif.checks.coverage import Coverage

__all__ = ["COVERAGE", "OF_GROUPS"]

COVERAGE = Coverage(
    "psum",
    [
        "row added",
        "row overwritten",
        "row with partitions masked",
        "a row every cycle",
        "read granted beside an overwrite of its bank",
        "read granted beside a sum being written to its bank",
        "vector refused by the writer",
        "scalar refused by the writer",
        "scalar refused by vector",
        "both read different banks",
        "vector write refused by a sum",
        "scalar write refused by a sum",
        "scalar write refused by vector",
        "both write different banks",
        "an engine writes one element of a word",
        "an engine writes both",
        "an engine writes some partitions",
        "an engine overwrites an add's old row in its cycle",
        "an engine writes beside the commit of a sum",
        "read in the cycle of the write gives the old row",
        "read one cycle later gives the new row",
        "element added again as soon as allowed",
        "sum is NaN",
        "sum is subnormal",
        "sum overflows",
        "-0 overwrites",
        "a sum is rounded to the nearest BF16",
        "a sum is rounded to BF16 at random",
        "row of a transpose",
        "transpose of a NaN with a payload",
        "transpose of some partitions",
        "vector write refused by a transpose",
        "scalar write refused by a transpose",
        "transpose in a bank that an add reads",
        "read in the cycle of a transpose gives the old row",
    ],
)

OF_GROUPS = Coverage(
    "psum.groups",
    ["rows of all groups in one cycle", "a row lost", "rows of three groups in one bank", "an add lost to an overwrite"]
    + ["two sums commit in one cycle", "an engine reads beside adds of two groups"]
    + ["an engine writes beside two commits", "a lone row of each group", "transposes of two groups in one cycle"],
)
"""Bins of a PSUM with more than one writer."""
