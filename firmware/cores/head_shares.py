"""Which heads of attention each core has."""

from firmware.views import KernelError

__all__ = ["head_shares"]


def head_shares(heads: int, shared: int, queries: int, cores: int) -> list[tuple[slice, slice]]:
    """Heads of queries and of keys that each core has. Heads of keys that several cores need are in each of them.
    Errors: KernelError."""
    if cores < 1 or heads % cores:
        raise KernelError(f"each core has as many heads: {heads} heads are no multiple of {cores} cores")
    each, group = heads // cores, heads // shared
    if each % group and group % each:
        raise KernelError(
            f"the {each} heads of a core are whole groups of heads that share keys, or a part of one: "
            f"{each} and {group}, of a group, are no multiples of each other"
        )
    if queries == 1 and each % group:
        # They are rows of one product, of which no other bits may come if it is cut.
        raise KernelError(
            f"heads of a single query that share keys stay in one core: {group} heads do, and a core has {each}"
        )
    return [
        (slice(n * each, (n + 1) * each), slice(n * each // group, ((n + 1) * each - 1) // group + 1))
        for n in range(cores)
    ]
