"""The table of a model: sizes of one of its layers. A table with a hole is refused in a sentence."""

from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from firmware.views import KernelError
from rtl.contract.toml_file import toml_table

__all__ = ["Attention", "Convolution", "Experts", "FeedForward", "Latent", "Model", "models", "read_model"]

FOLDER = Path(__file__).parent
_TYPES: dict[Any, str] = {
    int: "a whole number from 1",
    float: "a number above 0",
    bool: "true or false",
    str: "a text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """heads of queries, kv_heads of keys and values, of `head` dimensions. theta: base of rotary angles; window: keys
    that a query sees in layers that have one; sinks: a logit of each head beside its scores. None: there is none."""

    heads: int
    kv_heads: int
    head: int
    theta: float | None = None
    window: int | None = None
    sinks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Keys and values from a latent vector, as in multi-head latent attention: ranks of the vectors that queries, and
    keys with values, come from; dimensions of a head that are not and are turned, and of a value."""

    query_rank: int
    key_rank: int
    plain: int
    turned: int
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """The feed-forward block: inner values; `gated`: silu(x Wg) * (x Wu), else gelu(x Wu)."""

    hidden: int
    gated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of gated experts: `count` of them, `active` a token, `shared` that every token goes to."""

    count: int
    active: int
    hidden: int
    shared: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """`repeats` convolutions of an input of size x size, its padding in it, with windows of window x window."""

    name: str
    size: int
    window: int
    channels: int
    filters: int
    stride: int
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model of `layers` layers of one kind of a `family`: "decoder", "encoder" or "convolutions"."""

    name: str
    family: str
    title: str
    source: str
    layers: int
    width: int = 0
    attention: Attention | None = None
    latent: Latent | None = None
    feed_forward: FeedForward | None = None
    experts: Experts | None = None
    convolutions: tuple[Convolution, ...] = field(default=())


_SECTIONS: dict[str, type] = {
    "attention": Attention,
    "latent": Latent,
    "feed_forward": FeedForward,
    "experts": Experts,
}
_FAMILIES = ("decoder", "encoder", "convolutions")


def models() -> list[str]:
    """Names of the tables that are here."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_model(source: str) -> Model:
    """The model of a name or a TOML file. Errors: KernelError, one sentence with the file and what is missing in it."""
    if source.endswith(".toml"):
        path = Path(source)
    elif source in models():
        path = FOLDER / f"{source}.toml"
    else:
        raise KernelError(f"there is no model {source!r}; there are {', '.join(models())}, and files that end in .toml")
    table, where = toml_table(path, "model"), source if source.endswith(".toml") else path.name
    family = _value(table, "family", str, where)
    if family not in _FAMILIES:
        raise KernelError(f"{where}: family must be one of {', '.join(_FAMILIES)}, not {family!r}")
    known = {"family", "title", "source", "layers", "width", "convolutions", *_SECTIONS}
    if unknown := sorted(set(table) - known):
        raise KernelError(f"{where} has {unknown[0]}, which no table has; there are {', '.join(sorted(known))}")
    more: dict[str, Any] = {
        name: _section(table[name], kind, where, name) for name, kind in _SECTIONS.items() if name in table
    }
    if family == "convolutions":
        more["convolutions"] = _convolutions(table, where)
    else:
        more["width"] = _value(table, "width", int, where)
    model = Model(
        name=path.stem,
        family=family,
        title=_value(table, "title", str, where),
        source=_value(table, "source", str, where),
        layers=_value(table, "layers", int, where),
        **more,
    )
    _whole(model, where)
    return model


def _whole(model: Model, where: str) -> None:
    """KernelError unless everything is there that a layer of its family consists of."""
    if model.family == "convolutions":
        return
    if model.attention is None:
        raise KernelError(f"{where} has no section [attention], which a layer of {model.family} needs")
    if (model.feed_forward is None) == (model.experts is None):
        have = "no section" if model.experts is None else "both sections,"
        raise KernelError(f"{where} has {have} [feed_forward] or [experts]; a layer has one of them")
    if model.attention.heads % model.attention.kv_heads:
        raise KernelError(
            f"{where}: attention.heads must be a multiple of attention.kv_heads ({model.attention.kv_heads}), "
            f"not {model.attention.heads}"
        )
    if model.experts is not None and model.experts.active > model.experts.count:
        raise KernelError(
            f"{where}: experts.active must be at most experts.count ({model.experts.count}), not {model.experts.active}"
        )


def _convolutions(table: dict[str, Any], where: str) -> tuple[Convolution, ...]:
    rows = table.get("convolutions")
    if not isinstance(rows, list) or not rows:
        raise KernelError(f"{where} has no [[convolutions]], of which the family convolutions consists")
    found = tuple(_section(row, Convolution, where, f"convolutions {n}") for n, row in enumerate(rows, 1))
    for one in found:
        if one.window > one.size:
            raise KernelError(f"{where}: {one.name} has a window of {one.window} on an input of {one.size}")
    if len({one.name for one in found}) < len(found):
        raise KernelError(f"{where}: two convolutions have one name")
    return found


def _section(table: Any, kind: type, where: str, name: str) -> Any:
    """A section as its dataclass."""
    if not isinstance(table, dict):
        raise KernelError(f"{where}: {name} must be a section, not {table!r}")
    known = {f.name: f for f in fields(kind)}
    if unknown := sorted(set(table) - set(known)):
        raise KernelError(f"{where} has {name}.{unknown[0]}, which no table has; there are {', '.join(known)}")
    wanted = {n: f for n, f in known.items() if n in table or f.default is MISSING}
    return kind(**{n: _value(table, n, _plain(f.type), where, f"{name}.") for n, f in wanted.items()})


def _plain(annotation: Any) -> type:
    """The type of a field without its None."""
    return next((kind for kind in _TYPES if annotation in (kind, kind | None)), str)


def _value(table: dict[str, Any], name: str, kind: type, where: str, prefix: str = "") -> Any:
    """A field of a table. KernelError if it is not there, or not of its kind."""
    value = table.get(name)
    if kind is float and type(value) is int:
        value = float(value)
    if value is None:
        raise KernelError(f"{where} has no {prefix}{name}: {_TYPES[kind]} belongs there")
    good = type(value) is kind and (kind is bool or (bool(value.strip()) if isinstance(value, str) else value > 0))
    if not good:
        raise KernelError(f"{where}: {prefix}{name} must be {_TYPES[kind]}, not {value!r}")
    return value
