"""all-MiniLM-L6-v2 in plain PyTorch: a text in, its embedding out. The weights are those of the workload `minilm`."""

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firmware.kernels.minilm import DEFAULT_TEXT, LAYER_NORM_EPSILON, model_tensors, text_tokens
from sim.torch.examples.compare import main

__all__ = ["MiniLm", "inputs", "load"]

HEADS, LAYERS, WIDTH, HIDDEN, POSITIONS, WORDS = 12, 6, 384, 1536, 512, 30522


class Attention(nn.Module):
    """Of 12 heads, over all tokens of one text."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.shape[0]
        q, k, v = (f(x).view(1, tokens, HEADS, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        context = F.scaled_dot_product_attention(q, k, v)
        return self.output(context.transpose(1, 2).reshape(tokens, WIDTH))


class Layer(nn.Module):
    """Attention and feed-forward, each added to what it got and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPSILON) for _ in range(2))
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class MiniLm(nn.Module):
    """ids [tokens] to an embedding [384] of length 1."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.position, self.kind = (nn.Embedding(n, WIDTH) for n in (WORDS, POSITIONS, 2))
        self.norm = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[0], device=ids.device)
        x = self.norm(self.word(ids) + self.position(places) + self.kind(torch.zeros_like(ids)))
        for layer in self.layers:
            x = layer(x)
        mean = x.mean(dim=0)
        return mean / mean.pow(2).sum().sqrt()


_PLACES = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}


def _weights(tensors: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    found = {
        "word.weight": "embeddings.word_embeddings.weight",
        "position.weight": "embeddings.position_embeddings.weight",
        "kind.weight": "embeddings.token_type_embeddings.weight",
    }
    norms = {f"norm.{part}": f"embeddings.LayerNorm.{part}" for part in ("weight", "bias")}
    layers = {
        f"layers.{i}.{ours}.{part}": f"encoder.layer.{i}.{theirs}.{part}"
        for i in range(LAYERS)
        for ours, theirs in _PLACES.items()
        for part in ("weight", "bias")
    }
    return {ours: torch.from_numpy(np.array(tensors[name])) for ours, name in (found | norms | layers).items()}


def load() -> MiniLm:
    """The model with its weights. KernelError if they are not installed."""
    model = MiniLm()
    model.load_state_dict(_weights(model_tensors()))
    return model.eval()


def inputs(text: str = DEFAULT_TEXT) -> tuple[Tensor, ...]:
    """Token numbers of a text."""
    return (torch.tensor(text_tokens(text)),)


if __name__ == "__main__":
    main("minilm", load(), inputs())
