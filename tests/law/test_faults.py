"""Names of planted faults: written where the fault is made, in words that mean this place only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for path in (*(ROOT / "rtl").rglob("*.py"), *(ROOT / "verif" / "benches").rglob("*_top.py"))
    if path.parent != ROOT / "rtl" / "base" or path.name not in ("fault.py", "placed.py")  # which pass names on
)
LEAST_LETTERS = 20
ANY = "{}"


def told(name: ast.expr) -> str | None:
    """A text, with {} for what an f-string fills in; None for what is not written out."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return name.value
    if isinstance(name, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else ANY for part in name.values)
    return None


def names_in(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Where (a class, or the module) and what: each `fault(name)` and each name of a model in C++."""
    for part in tree.body:
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fault":
                yield getattr(part, "name", ""), node.args[0]
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "NATIVE_FAULTS":
                assert isinstance(node.value, ast.Dict)
                for key in node.value.keys:
                    assert key is not None
                    yield "NATIVE_FAULTS", key


PLACES: dict[str, set[str]] = {}
NOT_WRITTEN: list[str] = []
for source in SOURCES:
    where = source.relative_to(ROOT).as_posix()
    for unit, what in names_in(ast.parse(source.read_text())):
        text = told(what)
        if text is None:
            NOT_WRITTEN.append(f"{where}:{what.lineno}: {ast.unparse(what)}")
        else:
            PLACES.setdefault(text, set()).add(f"{where}, {unit}")


def patterns() -> list[re.Pattern[str]]:
    """What a name may be, from all sources."""
    return [re.compile(re.escape(name).replace(re.escape(ANY), r".+")) for name in PLACES]


def test_every_name_is_written_out() -> None:
    """So that a search finds the place; an f-string where the name of a port is what varies."""
    assert not NOT_WRITTEN, "\n".join(NOT_WRITTEN)
    assert len(PLACES) > 500


def test_a_name_means_one_unit() -> None:
    """A bench that plants it then knows what fails."""
    wrong = [f"{name}: {'; '.join(sorted(places))}" for name, places in PLACES.items() if len(places) > 1]
    assert not wrong, "\n".join(wrong)


def test_no_name_fits_another_pattern() -> None:
    known = patterns()
    wrong = [name for name in PLACES if sum(bool(p.fullmatch(name)) for p in known) != 1]
    assert not wrong, "\n".join(wrong)


def test_a_name_is_a_fragment_of_a_sentence() -> None:
    short = [name for name in PLACES if len(name.replace(ANY, "")) < LEAST_LETTERS]
    assert not short, f"too short to mean one place: {'; '.join(short)}"
    wrong = [name for name in PLACES if name != name.strip() or name.endswith(".")]
    assert not wrong, "; ".join(wrong)
