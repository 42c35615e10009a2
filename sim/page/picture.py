"""A picture of a page, as a browser shows it: `python -m sim.page.picture DIR FILE.png` (`make browser` first)."""

import argparse
import sys
import tempfile
from pathlib import Path

from sim.errors import PlexusError
from sim.page.browser import Browser
from sim.page.write import write_page

__all__ = ["main"]


def main() -> int:
    """Exit code 0, or 2 with a sentence."""
    parser = argparse.ArgumentParser(prog="sim.page.picture", description="A picture of the page of a run.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="of a run")
    parser.add_argument("picture", type=Path, metavar="FILE.png")
    parser.add_argument("--beside", type=Path, metavar="DIR2", help="of another run, to compare it with")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=1100)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--at", default="", metavar="ID", help="scroll to this part of the page, as in compare")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder, Browser() as browser:
            page = write_page(options.folder, options.beside, Path(folder) / "page.html")
            browser.open(page, width=options.width, height=options.height, dark=options.dark)
            if options.at:
                browser.run(f"document.getElementById({options.at!r}).scrollIntoView()")
            browser.picture(options.picture)
    except (PlexusError, OSError) as error:
        print(f"plexus: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
