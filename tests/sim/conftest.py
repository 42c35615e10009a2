"""Tests that share a model go to one worker (`--dist loadgroup`), those of another file too; the longest come first."""

from collections import Counter

import pytest

HERE = "tests/sim/"


def group_of(item: pytest.Item) -> str:
    """Name of the tests that go to one worker: of a model, or of a file."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else ""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What ends late must not begin late: slow models, then files, whose tests are few and long, then by number."""
    ours = [item for item in items if item.nodeid.startswith(HERE)]
    files = {item.path.stem for item in ours if not group_of(item)}
    for item in ours:
        if not group_of(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    count = Counter(map(group_of, ours))
    slow = {group_of(item) for item in ours if item.get_closest_marker("slow")}

    def place(item: pytest.Item) -> tuple[bool, bool, int, str]:
        group = group_of(item)
        return group not in slow, group not in files, -count[group], group

    items[:] = [*sorted(ours, key=place), *(item for item in items if not item.nodeid.startswith(HERE))]
