"""What no file of the repository may contain."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
HOME = re.compile(r"/(home|root|Users)/\w")
FUTURE = "from __future__ import " + "annotations"


def files() -> list[tuple[str, str]]:
    """Path and text of every text file under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = [n for n in listed.stdout.decode().split("\0") if n]
    else:  # not a clone: what an archive unpacks to
        generated = {".venv", "build", "__pycache__"}
        names = [
            str(p.relative_to(ROOT))
            for p in ROOT.rglob("*")
            if p.is_file() and not generated & set(p.relative_to(ROOT).parts)
        ]
    found = []
    for name in names:
        path = ROOT / name
        if not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            found.append((name, data.decode(errors="replace")))
    return found


def offenders(pattern: re.Pattern[str], prefix: str = "") -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in files()
        if name.startswith(prefix)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_path_of_a_machine() -> None:
    here = re.compile(re.escape(str(ROOT)) + r"\b")
    wrong = offenders(HOME) + offenders(here)
    assert not wrong, "\n".join(wrong)


def test_no_mark_for_later() -> None:
    wrong = offenders(LATER)
    assert not wrong, "work that is left belongs into verif/plan/testplan.toml:\n" + "\n".join(wrong)


def test_no_postponed_annotations_under_rtl() -> None:
    wrong = offenders(re.compile(re.escape(FUTURE)), "rtl/")
    assert not wrong, "Amaranth's members would vanish:\n" + "\n".join(wrong)


def test_no_star_import() -> None:
    wrong = [o for o in offenders(re.compile(r"^\s*from [\w.]+ import \*")) if ".py:" in o]
    assert not wrong, "\n".join(wrong)


def test_tests_that_are_named_are_there() -> None:
    """In pages and in the sources; a name with a place for others (`test_<area>.py`) is none."""
    named = re.compile(r"tests/\w+/test_\w+\.py")
    gone = [
        f"{name}: {test}"
        for name, text in files()
        if name.endswith((".md", ".py", ".yml")) and not name.startswith(("tests/", "CHANGELOG"))
        for test in sorted(set(named.findall(text)))
        if not (ROOT / test).is_file()
    ]
    assert not gone, "\n".join(gone)


def test_every_module_says_what_it_is() -> None:
    wrong = [
        name
        for name, text in files()
        if name.endswith(".py") and text.strip() and not text.lstrip().startswith(('"""', "#!"))
    ]
    assert not wrong, f"these begin without a docstring: {', '.join(wrong)}"
