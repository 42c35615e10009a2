"""Mutants of units against their benches: `python -m verif.mutants [UNIT...]`, `make mutants`.

Writes mutants.json and mutants.xml (JUnit) into the build folder; with --write also verif/plan/mutation_scores.toml and
docs/mutants.md. Ends with 1 if a unit falls below its score there or cannot be measured, with 2 for wrong use.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from sim.errors import PlexusError
from sim.toolchain import activate, build_root
from verif.mutants.insert import MutantModel
from verif.mutants.jobs import measure_all
from verif.mutants.measure import FATES, Measured
from verif.mutants.plan import PAGE, Score, page, read_scores, score_of, survivors, waivers, write_scores
from verif.mutants.unit import Unit
from verif.mutants.units import UNMEASURED, units

__all__ = ["main"]

MUTANTS, SEED = 40, 1
"""What the scores of the plan are about."""


def _whole(options: argparse.Namespace) -> bool:
    """Those mutants are tried that the scores of the plan are about."""
    asked = (options.mutants, options.seed, options.first, tuple(options.only), options.no_proofs)
    return asked == (MUTANTS, SEED, 0, (), False)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="verif.mutants", description="Mutants of units against their benches.")
    parser.add_argument("names", nargs="*", metavar="UNIT", help="units to try; all if none is named")
    parser.add_argument("--mutants", type=int, default=MUTANTS, metavar="N", help="in each model, 1 to 255")
    parser.add_argument("--seed", type=int, default=SEED, help="chooses which")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="try the first N of them")
    parser.add_argument("--only", type=int, nargs="+", default=(), metavar="N", help="try those of these numbers")
    parser.add_argument("--no-proofs", action="store_true", help="only run the benches: survivors may be equivalent")
    parser.add_argument("--jobs", type=int, default=1, help="units at work at once")
    parser.add_argument("--write", action="store_true", help="renew the scores in verif/plan and docs/mutants.md")
    parser.add_argument("--verbose", action="store_true", help="a line for each mutant")
    options = parser.parse_args(arguments)
    if not 1 <= options.mutants <= 255:
        raise PlexusError(f"a model has 1 to 255 mutants, not {options.mutants}")
    if options.write and not _whole(options):
        raise PlexusError(f"scores are of {MUTANTS} mutants of seed {SEED}, proofs included: --write takes no others")
    return options


def _chosen(names: Sequence[str]) -> list[Unit]:
    """Errors: PlexusError for a name that is none."""
    known = {unit.top: unit for unit in units()}
    for name in names:
        if name in UNMEASURED:
            raise PlexusError(f"{name} is not measured: {UNMEASURED[name]}")
        if name not in known:
            raise PlexusError(f"there is no unit {name!r}; there are {', '.join(known)}")
    return [known[name] for name in names] or list(known.values())


def _junit(rows: dict[str, tuple[str, float]]) -> None:
    """A case for each unit with what is wrong, if anything, and its seconds."""
    bad = sum(bool(wrong) for wrong, _ in rows.values())
    suite = ElementTree.Element("testsuite", name="mutants", tests=str(len(rows)), failures=str(bad))
    for name, (wrong, seconds) in rows.items():
        case = ElementTree.SubElement(suite, "testcase", classname="mutants", name=name, time=f"{seconds:.2f}")
        if wrong:
            ElementTree.SubElement(case, "failure", message=wrong)
    path = build_root() / "mutants.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="unicode", xml_declaration=True)


def _report(results: dict[str, Measured], scores: dict[str, Score], *, whole: bool) -> None:
    """The table, then the survivors and, of a `whole` run, waivers that fit no mutant."""
    console = Console()
    table = Table(
        "unit", "mutants", "failed", "hung", "crashed", "equivalent", "waived", "survived", "score %", box=None
    )
    for name, measured in results.items():
        score = scores[name]
        kills = [str(measured.count(fate)) for fate in ("failed", "hung", "crashed")]
        others = [str(n) for n in (score.equivalent, score.waived, score.survived)]
        table.add_row(name, str(score.mutants), *kills, *others, f"{score.percent:.1f}")
    console.print(table)
    for name, measured in results.items():
        for tried in survivors(measured, waivers()):
            console.print(f"{name} {tried.number} survives: {tried.mutant}", markup=False, soft_wrap=True)
        told = {str(t.mutant) for t in measured.tried}
        stale = [text for unit, text in waivers() if unit == name and text not in told]
        for text in stale if whole else ():
            console.print(f"{name}: verif/plan/mutants.toml waives what is no mutant any more: {text}", markup=False)


def _write(scores: Mapping[str, Score]) -> None:
    """After each unit, so that a run that is interrupted keeps what it has measured."""
    order = [unit.top for unit in units()]
    write_scores(scores, order)
    PAGE.write_text(page(read_scores(), order, UNMEASURED))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Exit code 0, 1 or 2 as above."""
    try:
        options = _arguments(arguments)
        chosen = _chosen(options.names)
        waived, floors = waivers(), read_scores()
        activate()
    except PlexusError as error:
        print(f"plexus: {error}", file=sys.stderr)
        return 2
    model = MutantModel(options.mutants, options.seed)
    results: dict[str, Measured] = {}
    scores: dict[str, Score] = {}
    rows: dict[str, tuple[str, float]] = {}
    measuring = measure_all(
        chosen,
        model,
        first=options.first,
        only=options.only,
        proofs=not options.no_proofs,
        verbose=options.verbose,
        jobs=options.jobs,
    )
    for unit, result in measuring:
        wrong = result if isinstance(result, str) else ""
        if isinstance(result, Measured):
            results[unit.top] = result
            scores[unit.top] = score = score_of(result, waived)
            print(f"{unit.top}: {score.killed} of {score.mutants} killed, {score.percent:.1f} %", flush=True)
            if options.write:
                _write(floors | scores)
            comparable = _whole(options) and not options.write and unit.top in floors
            if comparable and score.percent < (floor := floors[unit.top].percent):
                wrong = f"its score is {score.percent:.1f} %, and was {floor:.1f} %"
        if wrong:
            print(f"{unit.top}: {wrong}", file=sys.stderr, flush=True)
        rows[unit.top] = wrong, result.seconds if isinstance(result, Measured) else 0.0
    _report(results, scores, whole=_whole(options))
    _junit(rows)
    kept = {
        name: {"fates": {fate: measured.count(fate) for fate in FATES}, "score": scores[name].percent}
        | {"survivors": [str(t.mutant) for t in survivors(measured, waived)]}
        for name, measured in results.items()
    }
    (build_root() / "mutants.json").write_text(json.dumps(kept, indent=1))
    return 1 if any(wrong for wrong, _ in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
