"""Fields of configurations: what is enforced is what is listed, and what builds a model is what hardware reads."""

import dataclasses
from typing import Any

import pytest
from amaranth.hdl import Fragment

from rtl.contract.config import Config, ConfigError, load, named
from rtl.contract.config_changes import difference
from rtl.contract.config_fields import Knob, Role, built_values, knobs
from rtl.contract.config_sections import HbmConfig
from rtl.contract.link_config import LinkConfig
from rtl.contract.roles import needed
from rtl.contract.switch_config import SwitchConfig
from rtl.core import Core
from sim.build.order import Order
from sim.build.tops import top
from sim.config_listing import config_lines, rows
from sim.config_page import PAGE, page
from sim.systems.configurations import by_name

EVERY = list(by_name().items())


def sections(cls: Any) -> list[Any]:
    inner = [f.type for f in dataclasses.fields(cls) if dataclasses.is_dataclass(f.type)]
    return [cls, *(one for section in inner for one in sections(section))]


@pytest.mark.parametrize("kind", [Config, LinkConfig, SwitchConfig])
def test_every_field_says_what_it_is(kind: Any) -> None:
    missing = [f"{s.__name__}.{n}" for s in sections(kind) for n, knob in knobs(s).items() if knob is None]
    assert not missing, (
        f"{missing}: make it with number(), flag(), choice() or numbers() of rtl/contract/config_fields.py"
    )


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "docs/configuration.md is old: python -m sim.config_page"


@pytest.mark.parametrize(("name", "cfg"), EVERY)
def test_values_obey_their_ranges(name: str, cfg: Any) -> None:
    assert len(config_lines(cfg)) == len(rows(cfg))
    for row in rows(cfg):
        row.knob.check(row.key, row.value)


def outside(knob: Knob) -> list[Any]:
    if knob.among:
        return [7, "no such", None]
    return [knob.low - 1, knob.high + 1, float(knob.low), "many", None, True]


@pytest.mark.parametrize("row", rows(named("small")), ids=lambda row: row.key)
def test_what_is_listed_is_what_is_refused(row: Any) -> None:
    section, _, key = row.key.rpartition(".")
    cfg = named("small")
    for value in outside(row.knob):
        part: Any = getattr(cfg, section) if section else cfg
        with pytest.raises(ConfigError, match=rf"^{row.key} must be "):
            dataclasses.replace(part, **{key: value})


def other(cfg: Config, row: Any) -> Config:
    """Another value of a field, one that the whole configuration takes."""
    knob, value = row.knob, row.value
    if knob.named:
        return load(cfg.name, [f"{row.key}={next(name for name, one in knob.named.items() if one != value)}"])
    if isinstance(value, tuple):
        return load(cfg.name, [f"{row.key}={':'.join(str(n + 1) for n in value)}"])
    values = [not value] if isinstance(value, bool) else [value // 2, 2 * value, value - 1, value + 8, value + 1]
    for one in values:
        if one == value:
            continue
        try:
            knob.check(row.key, one)
            return load(cfg.name, [f"{row.key}={str(one).lower()}"])
        except ConfigError:
            continue
    raise AssertionError(f"no other value of {row.key} is allowed")


@pytest.mark.parametrize("row", rows(named("small")), ids=lambda row: row.key)
def test_a_change_builds_what_the_list_says(row: Any) -> None:
    if row.key in ("tensor.moving_max", "partitions"):
        changed = load("small", [f"{row.key}={2 * row.value if row.key == 'partitions' else row.value // 2}"])
    else:
        changed = other(named("small"), row)

    def key(cfg: Config) -> str:
        t = top("core")
        return Order(top=t, cfg=cfg, kind="native", options={}, planted=False, waves=False, extra=()).key()[0]

    assert set(difference(changed, named("small"))) == {row.key}
    assert (key(changed) != key(named("small"))) == row.builds


class _Sealed(HbmConfig):
    """HBM's section, whose parameters of a run nobody may read."""

    def __getattribute__(self, name: str) -> Any:
        knob = knobs(HbmConfig).get(name)
        if knob is not None and knob.role == Role.HOST and getattr(_Sealed, "closed", False):
            raise AssertionError(f"hardware reads hbm.{name}, which is said to build nothing")
        return super().__getattribute__(name)


def test_hardware_reads_no_parameter_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = named("tiny")
    cfg = dataclasses.replace(tiny, hbm=_Sealed(**dataclasses.asdict(tiny.hbm)))
    assert built_values(cfg) == built_values(tiny)
    monkeypatch.setattr(_Sealed, "closed", True, raising=False)
    with pytest.raises(AssertionError, match="hbm.latency_ns"):
        _ = cfg.latency_cycles
    Fragment.get(Core(cfg), None)


def test_changes_are_named() -> None:
    assert difference(load("small", ["dma.engines=8", "partitions=64"]), named("small")) == {
        "partitions": 64, "dma.engines": 8,
    }  # fmt: skip
    assert difference(named("small"), named("small")) == {}


def test_a_class_that_goes_first_stays_in_models_of_plain_programs() -> None:
    """Its lane changes in which order a port of HBM takes writes, of class 0 too."""
    assert needed(load("tiny")).dma.classes == 1
    for first in ("dma.strict_class=0", "dma.strict_class=2", "dma.priority=true"):
        assert needed(load("tiny", [first])).dma == load("tiny", [first, "dma.indirect=false"]).dma
        assert needed(load("tiny", [first, "dma.classes=4"])).dma.classes == 4
    assert needed(load("tiny", ["dma.classes=1", "dma.priority=true"])).dma.priority is False
