"""What `plexus nki --count` prints."""

from firmware.nki.sites import Count

__all__ = ["lines"]

_ORDER = ("missing", "argument", "several cores", "instruction", "lowered", "built")


def lines(count: Count) -> list[str]:
    """A count as a table of calls, those that are not there first, and sums."""
    rows = sorted(count.calls.items(), key=lambda row: (_ORDER.index(row[0][1]), -row[1], row[0]))
    found = [f"{'sites':>6}  {'call':30} {'kind':13} reason"]
    found += [f"{n:6,}  {call:30} {kind:13} {why}".rstrip() for (call, kind, why), n in rows]
    if count.names:
        found.append("names without a call that are not there: " + _listed(count.names))
    if count.unread:
        found.append(f"no Python, left out: {', '.join(count.unread)}")
    found.append(f"files that miss nothing: {len(count.whole)} of {count.files}")
    found += [f"        {name}" for name in count.whole]
    found.append("sums: " + ", ".join(f"{count.of(kind):,} {kind}" for kind in _ORDER))
    found.append(
        f"of call sites that need one core {count.share():.1%} are there; "
        f"{count.share('built'):.1%} of those that send something"
    )
    return found


def _listed(names: dict[str, int]) -> str:
    return ", ".join(f"{name} ({n})" for name, n in sorted(names.items(), key=lambda one: (-one[1], one[0])))
