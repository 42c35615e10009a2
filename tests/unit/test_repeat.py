"""The command line that repeats a run of a bench, and what it makes of one."""

import dataclasses
import shlex
from typing import Any

import pytest

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import NAMED, ConfigError
from rtl.contract.link_config import LINKS
from rtl.contract.switch_config import SWITCHES
from sim.cli import main
from sim.errors import PlexusError
from sim.run.repeat import command_line, configured, find_bench, options_from

LINK = dataclasses.replace(LINKS["x8"], weights=(2, 1, 1, 1, 1, 1, 1, 1), window_flits=32, shared_flits=40)
SWITCH = dataclasses.replace(SWITCHES["sw16"], link=LINK)
CORE = dataclasses.replace(NAMED["small"], dma=dataclasses.replace(NAMED["small"].dma, engines=8))


def words_after(words: list[str], option: str) -> list[str]:
    return [value for name, value in zip(words, words[1:], strict=False) if name == option]


@pytest.mark.parametrize("cfg", [*NAMED.values(), *LINKS.values(), *SWITCHES.values(), LINK, SWITCH, CORE])
def test_a_command_line_says_the_whole_configuration(cfg: AnyConfig) -> None:
    words = shlex.split(
        command_line("fifo", "verif.benches.base.bench_fifo", cfg, options={}, seed=7, plant="", testcase=None)
    )
    (name,) = words_after(words, "--config")
    again = configured(name, words_after(words, "--set"))
    assert dataclasses.replace(again, name=cfg.name) == cfg or again.hash == cfg.hash
    assert words_after(words, "--seed") == ["7"] and "--plant" not in words


@pytest.mark.parametrize("options", [{}, {"shape": 16, "depth": 4}, {"form": "structural", "reverse": True}])
def test_options_go_and_come_back(options: dict[str, Any]) -> None:
    bench = "verif.benches.link.bench_scheduler"
    line = command_line(
        "fifo", bench, CORE, options=options, seed=1, plant="a beat's last byte is lost", testcase="a test"
    )
    words = shlex.split(line)
    assert options_from(words_after(words, "--option")) == options
    assert words_after(words, "--plant") == ["a beat's last byte is lost"]
    assert words_after(words, "--test") == ["a test"]
    assert find_bench("fifo", words[3]) == bench


def test_names_of_benches() -> None:
    assert find_bench("fifo", None) == find_bench("ram_fifo", "fifo") == "verif.benches.base.bench_fifo"
    with pytest.raises(PlexusError, match=r"^scheduler is the name of 2 benches: link.scheduler, switch.scheduler$"):
        find_bench("scheduler", None)
    with pytest.raises(PlexusError, match="^there is no bench 'fifi'; there are .*base.fifo"):
        find_bench("fifo", "fifi")
    with pytest.raises(PlexusError, match="^no bench is called psum_bank, so name the one for it; there are "):
        find_bench("psum_bank", None)


def test_values_with_a_name_may_be_called_so() -> None:
    core = configured("tiny", ["fabric.endpoint_bits=gen1"])
    assert core == configured("tiny", ["fabric.endpoint_bits=1:2:4:3"]) != configured("tiny", [])


def test_a_section_is_not_set_and_changed_at_once() -> None:
    with pytest.raises(ConfigError, match="^dma of 'dma.engines' is set to '1' too; "):
        configured("tiny", ["dma=1", "dma.engines=8"])


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("engines=8", "engines is no field; fields are name, "),
        ("dma.engine=8", "dma.engine is no field; fields are dma."),
        ("dma=8", "dma is a section of fields"),
        ("partitions.x=8", "partitions is no section of fields"),
        ("dma.engines=many", "dma.engines must be a whole number, not 'many'"),
        ("dma.engines", "a setting is written key=value, not 'dma.engines'"),
    ],
)
def test_wrong_settings_are_a_sentence(setting: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError) as error:
        configured("tiny", [setting])
    assert str(error.value).startswith(why)
    assert main(["bench", "fifo", "--set", setting]) == 2
    assert capsys.readouterr().err.startswith(f"plexus: {why}")
