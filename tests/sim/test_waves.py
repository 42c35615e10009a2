"""Waves of the native driver: values, cycles and scopes in the file are those that were asked for."""

import re
import struct
from pathlib import Path

import pytest

from rtl.contract.config import named
from sim.build import Built, build
from sim.errors import PlexusError
from sim.native.library import DRIVER_SOURCES, NativeCore
from sim.run.waves import Waves
from verif.benches.native.standin import GO, REGISTERS

pytestmark = pytest.mark.sim
TINY = named("tiny")
ADDRESS = 8192
CYCLES = 200


def model(kind: str) -> Built:
    return build("standin", TINY, kind="native", extra_cpp=DRIVER_SOURCES, waves=kind)


def record(built: Built, waves: Waves) -> list[int]:
    """Run with waves; returns the cycles, counted as in the file, in which the host changed `host_wdata` to ADDRESS."""
    with NativeCore(built.binary, TINY) as core:
        core.reset()
        begin = core.cycle
        core.waves(waves.path, scope=waves.scope_in(built.folder), first=waves.first, end=waves.end)
        for name in ("read_bursts", "read_beats"):
            core.host_write(REGISTERS[name], 2)
        seen = core.cycle - begin
        core.host_write(REGISTERS["read_address"], ADDRESS)
        core.host_write(GO, 1)
        core.run(CYCLES, milliseconds=60_000)
    return [seen]


def changes(path: Path) -> tuple[dict[str, list[tuple[int, int]]], set[int]]:
    """Of a VCD: of each variable, by its path, (time, value); and all times."""
    names: dict[str, list[str]] = {}
    found: dict[str, list[tuple[int, int]]] = {}
    scopes: list[str] = []
    times: set[int] = set()
    time = 0
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == ["$scope"]:
            scopes.append(words[2])
        elif words[:1] == ["$upscope"]:
            scopes.pop()
        elif words[:1] == ["$var"]:
            names.setdefault(words[3], []).append(".".join([*scopes, words[4]]))
        elif line.startswith("#"):
            time = int(line[1:])
            times.add(time)
        elif match := re.fullmatch(r"(?:b([01]+) |([01]))(\S+)", line):
            for name in names[match[3]]:
                found.setdefault(name, []).append((time, int(match[1] or match[2], 2)))
    return found, times


def header(path: Path) -> dict[str, int]:
    """What the first block of an FST says."""
    data = path.read_bytes()
    kind, length, first, last, _, _, scopes, names, values = struct.unpack_from(">BQQQdQQQQ", data)
    assert (kind, length) == (0, 329)
    return {"first": first, "last": last, "scopes": scopes, "names": names, "values": values}


def test_vcd_holds_the_values_and_only_the_window(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.vcd", tmp_path / "part.vcd"
    (seen,) = record(model("vcd"), Waves(path=whole))
    found, times = changes(whole)
    assert (2 * seen, ADDRESS) in found["top.host_wdata"]
    assert min(times) == 0 and max(times) >= 2 * 20
    record(model("vcd"), Waves(path=part, first=10, end=20))
    inside, times = changes(part)
    assert (min(times), max(times)) == (20, 39)

    def at(values: list[tuple[int, int]], time: int) -> int:
        return [value for when, value in values if when <= time][-1]

    assert all(at(inside[name], time) == at(found[name], time) for name in inside for time in (20, 27, 39))


def test_fst_has_the_same_window_and_is_smaller(tmp_path: Path) -> None:
    vcd, fst = tmp_path / "x.vcd", tmp_path / "x.fst"
    record(model("vcd"), Waves(path=vcd, first=10, end=20))
    record(model("fst"), Waves(path=fst, first=10, end=20))
    found = header(fst)
    assert (found["first"], found["last"]) == (20, 39)
    assert found["names"] == len(re.findall(r"^ *\$var ", vcd.read_text(), re.M))
    record(model("vcd"), Waves(path=vcd))
    record(model("fst"), Waves(path=fst))
    assert fst.stat().st_size < vcd.stat().st_size


def test_scope_alone_is_in_the_file(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.fst", tmp_path / "part.fst"
    built = model("fst")
    record(built, Waves(path=whole))
    record(built, Waves(path=part, scope="clock"))
    assert 0 < header(part)["names"] < header(whole)["names"]
    record(built, Waves(path=part, scope="top"))
    assert header(part)["values"] == header(whole)["values"]
    record(model("vcd"), Waves(path=tmp_path / "x.vcd", scope="top.clock", first=3))
    found, _ = changes(tmp_path / "x.vcd")
    assert all(name.startswith("top.top.clock.") for name in found), found.keys()
    counted = found["top.top.clock.now"]
    assert [b - a for (_, a), (_, b) in zip(counted, counted[1:])] == [1] * (len(counted) - 1)
    with pytest.raises(PlexusError, match="there is no scope 'absent' in top; those in it: clock"):
        Waves(path=part, scope="absent").scope_in(built.folder)


def test_a_scope_whose_name_is_a_word_of_verilog(tmp_path: Path) -> None:
    """Verilog writes it escaped, as a block that is compiled by itself has its `instance`."""
    text = "module top (clk);\n  tile tile_1 (\n  );\nendmodule\n"
    text += "module tile (clk);\n  tile_inside \\instance (\n  );\nendmodule\n"
    (tmp_path / "top.v").write_text(text)
    assert Waves(path=Path("x.vcd"), scope="tile_1.instance").scope_in(tmp_path) == "top top tile_1 instance"
    with pytest.raises(PlexusError, match=r"no scope 'absent' in top\.tile_1; those in it: instance"):
        Waves(path=Path("x.vcd"), scope="tile_1.absent").scope_in(tmp_path)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"path": Path("x.png")}, "ends in .fst .* or .vcd, not x.png"),
        ({"path": Path("x")}, "ends in .fst .* or .vcd, not x"),
        ({"path": Path("x.fst"), "first": 9, "end": 9}, "until cycle 9 must end behind cycle 9"),
    ],
)
def test_wrong_waves_are_one_sentence(given: dict, says: str) -> None:
    with pytest.raises(PlexusError, match=says):
        Waves(**given)
