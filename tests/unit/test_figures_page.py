"""docs/figures.md: made from docs/figures.json, which takes over what was measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from sim import bench
from sim.figures.page import KEPT, PAGE, SECTIONS, main, page, taken_over
from sim.figures.rows import Bench, Row, read_rows, write_rows

OLD = Row(name="speed", what="simulation speed", value=50_000, unit="cycles/s", target="", group="speed")
STAYS = Row(name="dma-read", what="dma, read", value=0.958, unit="", target=">= 0.90", group="dma")
NEW = Row(name="dma-write", what="dma, write", value=0.8, unit="", target=">= 0.90", peer="of 64", group="dma")


def test_the_page_is_made_from_the_figures_beside_it() -> None:
    assert PAGE.read_text() == page(read_rows(KEPT)), "python -m sim.figures.page writes it"


def test_every_group_has_a_section() -> None:
    assert sorted(SECTIONS) == sorted(bench.GROUPS)
    with pytest.raises(ValueError, match="no section for the groups other"):
        page([replace(OLD, group="other")])


def test_figures_that_are_kept_are_whole() -> None:
    rows = read_rows(KEPT)
    assert len({row.name for row in rows}) == len(rows) > 50
    assert all(row.match and row.what and row.group in bench.GROUPS for row in rows)


def test_what_was_measured_now_takes_its_place() -> None:
    again = replace(OLD, value=60_000)
    assert taken_over([OLD, STAYS], [NEW, again]) == [again, STAYS, NEW]
    assert taken_over([OLD], [replace(OLD, value=1, match=False), replace(NEW, group="")]) == [OLD]


def test_the_command_writes_both(tmp_path: Path) -> None:
    kept, to, measured = tmp_path / "figures.json", tmp_path / "figures.md", tmp_path / "bench.json"
    write_rows(kept, [STAYS])
    write_rows(measured, [NEW])
    assert main(measured, kept, to) == 0
    assert read_rows(kept) == [STAYS, NEW]
    assert "| dma, read | 0.958 | >= 0.90 | yes |  |\n| dma, write | 0.800 | >= 0.90 | no | of 64 |\n" in to.read_text()


def test_a_figure_knows_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def group(bench: Bench) -> None:
        bench.rows.append(replace(NEW, value=1, group=""))

    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path))
    monkeypatch.setattr(bench, "GROUPS", {"first": group, "second": lambda b: b.rows.append(OLD)})
    assert bench.main([]) == 0
    assert [row.group for row in read_rows(tmp_path / "bench.json")] == ["first", "second"]
