"""docs/configuration.md, written from the configurations: `python -m sim.config_page`."""

from pathlib import Path

from sim.config_listing import rows, shown
from sim.systems.configurations import configurations
from sim.toolchain import ROOT

__all__ = ["PAGE", "page"]

PAGE = ROOT / "docs" / "configuration.md"

_HEAD = """# Configurations

This page is written by `python -m sim.config_page` from the fields themselves (`rtl/contract/config_sections.py`,
`fabric_config.py`, `link_config.py`, `switch_config.py`); a test compares them. `plexus list NAME` prints the same of
one configuration.

A field of a core is changed with `--set KEY=VALUE`, or in a TOML file that starts from a named configuration; a file is
named with `--config`, as in `plexus run gemm --config mine.toml`:

    base = "small"
    partitions = 64
    [dma]
    engines = 8

Links and switches have named configurations; the parameters of `plexus run link` and `plexus run switch` change some of
their fields. A change of a field with "yes" under "builds" makes another model; of the others it changes the run alone.
"""


def page() -> str:
    """The whole text."""
    parts = [_HEAD]
    for one in configurations():
        named = one.named
        parts.append(f"\n## {one.title}\n\n")
        parts.append(f"| field | {' | '.join(named)} | range | unit | builds | meaning |\n")
        parts.append(f"|---|{'---|' * len(named)}---|---|---|---|\n")
        tables = [rows(cfg) for cfg in named.values()]
        for fields in zip(*tables, strict=True):
            row = fields[0]
            values = " | ".join(shown(one.value) for one in fields)
            builds = "yes" if row.builds else "no"
            parts.append(
                f"| `{row.key}` | {values} | {row.knob.range} | {row.knob.unit} | {builds} | {row.knob.meaning} |\n"
            )
    return "".join(parts)


def main(path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(page())


if __name__ == "__main__":
    main()
