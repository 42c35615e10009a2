"""The operations of one layer of a model, in order, each a workload with its parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from firmware.models.table import Attention, Experts, FeedForward, Latent, Model
from firmware.views import KernelError

__all__ = ["PHASES", "Layer", "Operation", "operations"]

PHASES = ("prefill", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A workload with what differs from its defaults. `repeats`: so many alike, one after another, make the layer."""

    name: str
    workload: str
    params: dict[str, Any] = field(default_factory=dict)
    repeats: int = 1
    weights: int = 0  # numbers of it that the layer has to keep, of all repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What of a model is asked for. tokens: of each of `batch` texts, in decode those that it has by now, the new one
    among them; `sliding`: a layer with the window; `dtype`: of its products, a name of GEMM_FORMATS."""

    model: Model
    phase: str
    tokens: int | None
    batch: int
    dtype: str
    sliding: bool

    @property
    def queries(self) -> int:
        """New tokens of a text."""
        return 1 if self.phase == "decode" else self.tokens or 1

    @property
    def rows(self) -> int:
        """New tokens of all texts."""
        return self.queries * self.batch


def operations(layer: Layer) -> list[Operation]:
    """In order. Errors: KernelError, one sentence, for what the model has not."""
    model = layer.model
    if model.family == "convolutions":
        if layer.tokens is not None or layer.phase != "prefill":
            raise KernelError(f"{model.title} takes images (batch), no tokens and no phase")
        return list(_convolutions(layer))
    if layer.tokens is None:
        raise KernelError(f"{model.title} needs tokens, from 1")
    if model.family == "encoder" and layer.phase != "prefill":
        raise KernelError(f"{model.title} is an encoder: it reads all tokens at once and has no phase {layer.phase}")
    attention = model.attention
    assert attention is not None
    if layer.sliding and attention.window is None:
        raise KernelError(f"{model.title} has no layer with a window, so sliding must be false")
    return list(_encoder(layer, attention) if model.family == "encoder" else _decoder(layer, attention))


def _product(layer: Layer, name: str, k: int, n: int, *, m: int | None = None, dtype: str = "", repeats: int = 1):
    """x [m, k] W [k, n]."""
    params = {"m": m or layer.rows, "k": k, "n": n, "dtype": dtype or layer.dtype, "out": "bf16"}
    return Operation(name=name, workload="gemm", params=params, repeats=repeats, weights=k * n * repeats)


def _norm(layer: Layer, name: str, width: int, *, rms: bool) -> Operation:
    return Operation(name=name, workload="layernorm", params={"rows": layer.rows, "columns": width, "rms": rms})


def _elementwise(name: str, op: str, rows: int, columns: int, repeats: int = 1) -> Operation:
    return Operation(
        name=name, workload="elementwise", params={"op": op, "rows": rows, "columns": columns}, repeats=repeats
    )


def _attended(layer: Layer, attention: Attention, **more: int) -> Operation:
    """Attention of all texts: heads beside each other."""
    shape = {"heads": attention.heads, "kv_heads": attention.kv_heads, "head": attention.head} | more
    shape |= {name: shape[name] * layer.batch for name in ("heads", "kv_heads")}
    params: dict[str, Any] = shape | {"seq": layer.tokens, "queries": layer.queries}
    if layer.model.family == "decoder":
        params |= {"causal": True, "sinks": attention.sinks}
        params |= {"window": attention.window} if layer.sliding else {}
    return Operation(name="attention", workload="attention", params=params)


def _turned(layer: Layer, heads: int, head: int, theta: float) -> Operation:
    first = (layer.tokens or 1) - layer.queries
    params = {"tokens": layer.rows, "heads": heads, "head": head, "first": first, "theta": theta}
    return Operation(name="rope", workload="rope", params=params)


def _decoder(layer: Layer, attention: Attention) -> Iterator[Operation]:
    model = layer.model
    yield _norm(layer, "attention_norm", model.width, rms=True)
    if model.latent is not None:
        yield from _latent(layer, attention, model.latent)
    else:
        yield _product(layer, "q", model.width, attention.heads * attention.head)
        for name in "kv":
            yield _product(layer, name, model.width, attention.kv_heads * attention.head)
        if attention.theta is not None:
            yield _turned(layer, attention.heads + attention.kv_heads, attention.head, attention.theta)
        yield _attended(layer, attention)
        yield _product(layer, "o", attention.heads * attention.head, model.width)
    yield _elementwise("attention_add", "add", layer.rows, model.width)
    yield _norm(layer, "ffn_norm", model.width, rms=True)
    if model.experts is not None:
        yield from _experts(layer, model.experts)
    if model.feed_forward is not None:
        yield from _feed_forward(layer, model.feed_forward)
    yield _elementwise("ffn_add", "add", layer.rows, model.width)


def _feed_forward(layer: Layer, block: FeedForward) -> Iterator[Operation]:
    width = layer.model.width
    for name in ("gate", "up") if block.gated else ("up",):
        yield _product(layer, name, width, block.hidden)
    yield _elementwise("activation", "swiglu" if block.gated else "gelu", layer.rows, block.hidden)
    yield _product(layer, "down", block.hidden, width)


def _experts(layer: Layer, experts: Experts) -> Iterator[Operation]:
    """Tokens go to the experts evenly, one expert comes after another; scores stay BF16."""
    width, chosen = layer.model.width, layer.rows * experts.active
    used = min(experts.count, chosen)
    each = -(-chosen // used)
    yield _product(layer, "router", width, experts.count, dtype="bf16")
    for name, k, n in (("gate", width, experts.hidden), ("up", width, experts.hidden), ("down", experts.hidden, width)):
        if name == "down":
            yield _elementwise("expert_activation", "swiglu", each, experts.hidden, used)
        product = _product(layer, f"expert_{name}", k, n, m=each, repeats=used)
        yield Operation(
            name=product.name, workload="gemm", params=product.params, repeats=used, weights=k * n * experts.count
        )
    if experts.shared:
        hidden = experts.hidden * experts.shared
        for name in ("gate", "up"):
            yield _product(layer, f"shared_{name}", width, hidden)
        yield _elementwise("shared_activation", "swiglu", layer.rows, hidden)
        yield _product(layer, "shared_down", hidden, width)
    # What the experts give a token is added up, the first one to nothing.
    yield _elementwise("expert_sum", "add", chosen + layer.rows * (experts.shared or 0), width)


def _latent(layer: Layer, attention: Attention, latent: Latent) -> Iterator[Operation]:
    """Latent attention. In decode the way from the latent vector to keys and values is taken into queries and results,
    a product a head, and all heads attend to the one latent vector of each token."""
    width, heads = layer.model.width, attention.heads
    yield _product(layer, "q_down", width, latent.query_rank)
    yield _norm(layer, "q_norm", latent.query_rank, rms=True)
    yield _product(layer, "q_up", latent.query_rank, heads * (latent.plain + latent.turned))
    yield _product(layer, "kv_down", width, latent.key_rank + latent.turned)
    yield _norm(layer, "kv_norm", latent.key_rank, rms=True)
    if attention.theta is not None:
        yield _turned(layer, heads + 1, latent.turned, attention.theta)
    if layer.phase == "decode":
        yield _product(layer, "q_to_latent", latent.plain, latent.key_rank, repeats=heads)
        yield _attended(layer, attention, kv_heads=1, head=latent.key_rank + latent.turned, values=latent.key_rank)
        yield _product(layer, "latent_to_v", latent.key_rank, latent.values, repeats=heads)
    else:
        yield _product(layer, "kv_up", latent.key_rank, heads * (latent.plain + latent.values))
        yield _attended(layer, attention, head=latent.plain + latent.turned, values=latent.values)
    yield _product(layer, "o", heads * latent.values, width)


def _encoder(layer: Layer, attention: Attention) -> Iterator[Operation]:
    model = layer.model
    assert model.feed_forward is not None
    yield _product(layer, "q", model.width, attention.heads * attention.head)
    for name in "kv":
        yield _product(layer, name, model.width, attention.kv_heads * attention.head)
    yield _attended(layer, attention)
    yield _product(layer, "o", attention.heads * attention.head, model.width)
    yield _elementwise("attention_add", "add", layer.rows, model.width)
    yield _norm(layer, "attention_norm", model.width, rms=False)
    yield from _feed_forward(layer, model.feed_forward)
    yield _elementwise("ffn_add", "add", layer.rows, model.width)
    yield _norm(layer, "ffn_norm", model.width, rms=False)


def _convolutions(layer: Layer) -> Iterator[Operation]:
    """Products of unrolled windows: a window is a row."""
    for one in layer.model.convolutions:
        windows = ((one.size - one.window) // one.stride + 1) ** 2
        k = one.window**2 * one.channels
        product = _product(layer, one.name, k, one.filters, m=windows * layer.batch)
        yield Operation(
            name=one.name,
            workload="gemm",
            params=product.params,
            repeats=one.repeats,
            weights=product.weights * one.repeats,
        )
