"""A headless Chromium over its debugging pipe: what a page looks like and does, in a real browser."""

import base64
import colorsys
import fcntl
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from select import select
from types import TracebackType
from typing import Any, Self

from sim.errors import PlexusError
from sim.toolchain import build_root

__all__ = ["Browser", "browser_folder", "browser_there"]

_FLAGS = (
    "--headless=shell",
    "--single-process",
    "--no-zygote",
    "--font-render-hinting=none",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
)
_SECONDS = 60.0
_FAR = 64
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


def browser_folder() -> Path:
    """Where `make browser` puts it."""
    return build_root() / "browser"


def browser_there() -> bool:
    """Whether it is there, whole."""
    return (browser_folder() / "done").exists()


def _far(descriptor: int) -> int:
    """The same with a number that nobody else wants."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FAR)
    os.close(descriptor)
    return copy


class Browser:
    """One page at a time. A context manager. `heard`: what the console said, `asked`: what was requested, but the page.

    Errors: PlexusError if there is no browser, or it does not answer within a minute.
    """

    def __init__(self) -> None:
        self.folder = browser_folder()
        if not browser_there():
            raise PlexusError(f"there is no browser in {self.folder}: make browser brings one")
        self.heard: list[str] = []
        self.asked: list[str] = []
        self._number = 0
        self._rest = b""

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="plexus-browser-")
        # it reads from descriptor 3 and writes to 4; copies far from these do not meet them
        to_it, self._write = (_far(end) for end in os.pipe())
        self._read, from_it = (_far(end) for end in os.pipe())
        fonts = Path(self._home.name) / "fonts.conf"
        fonts.write_text(_FONTS.format(fonts=self.folder.resolve() / "fonts", cache=self._home.name))
        environment = {
            "HOME": self._home.name,
            "PATH": os.environ.get("PATH", ""),
            "LD_LIBRARY_PATH": f"{self.folder / 'lib'}:{self.folder}",
            "FONTCONFIG_FILE": str(fonts),
        }
        command = [str(self.folder / "chromium"), *_FLAGS, f"--user-data-dir={self._home.name}/data", "about:blank"]
        self._process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(to_it, 3), os.dup2(from_it, 4)) and None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_it)
        os.close(from_it)
        target = self._call("Target.createTarget", {"url": "about:blank"}, "")["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True}, "")["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._home.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the debugging protocol, to the page."""
        return self._call(method, parameters, self._session)

    def _call(self, method: str, parameters: dict[str, Any], session: str) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        return self._until(lambda told: told.get("id") == self._number, method).get("result", {})

    def _until(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        while True:
            while b"\0" in self._rest:
                text, _, self._rest = self._rest.partition(b"\0")
                told = json.loads(text)
                self._note(told)
                if wanted(told):
                    if "error" in told:
                        raise PlexusError(f"the browser refuses {what}: {told['error'].get('message')}")
                    return told
            if not select([self._read], [], [], _SECONDS)[0]:
                raise PlexusError(f"the browser does not answer {what}")
            got = os.read(self._read, 1 << 20)
            if not got:
                raise PlexusError(f"the browser ended before it answered {what}")
            self._rest += got

    def _note(self, told: dict[str, Any]) -> None:
        method, parameters = told.get("method"), told.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.heard.append(str(parameters["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Log.entryAdded":
            self.heard.append(str(parameters["entry"].get("text")))
        elif method == "Runtime.consoleAPICalled":
            self.heard.append(str(parameters["args"]))
        elif method == "Network.requestWillBeSent" and parameters["request"]["url"] != self._page:
            self.asked.append(parameters["request"]["url"])

    _page = "about:blank"

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a page and wait until its script has drawn it."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._page = page.resolve().as_uri()
        self.call("Page.navigate", url=self._page)
        until = time.monotonic() + _SECONDS
        while not self.run("!!document.body && !!document.body.dataset.ready"):
            if time.monotonic() > until or self.heard:
                raise PlexusError(f"{page} is not drawn: {'; '.join(self.heard) or 'its script has not ended'}")
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise PlexusError(f"the page fails: {told['exceptionDetails'].get('exception', {}).get('description')}")
        return told["result"].get("value")

    def colours(self, canvas: str) -> int:
        """How many colours a canvas of the page shows, by its id."""
        return len(self._pixels(canvas, 0, 1 << 20))

    def hues(self, canvas: str, top: int, bottom: int) -> set[int]:
        """Hues, in steps of 30 degrees, of strong colours of a canvas between two of its lines."""
        found: set[int] = set()
        for colour in self._pixels(canvas, top, bottom):
            hue, _, strength = colorsys.rgb_to_hls(*((colour >> at & 255) / 255 for at in (16, 8, 0)))
            if strength > 0.4:
                found.add(round(12 * hue) % 12 * 30)
        return found

    def _pixels(self, canvas: str, top: int, bottom: int) -> list[int]:
        return self.run(
            f"(() => {{ const c = document.getElementById({canvas!r}), s = new Set();"
            f" const d = c.getContext('2d').getImageData(0, {top}, c.width, Math.min({bottom}, c.height) - {top}).data;"
            " for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return [...s]; })()"
        )

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
