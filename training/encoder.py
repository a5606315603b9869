"""The encoder that is trained: layers of BERT over given word vectors, with one or more heads on top."""

import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from training.answers import Head
from training.base import TRUNK_FILE

_WIDTH, _HEADS, _INNER, _POSITIONS, _TYPES = 384, 12, 1536, 512, 2
_EPSILON = 1e-12


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each followed by a residual and a normalisation."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.query, self.key, self.value, self.attended = (nn.Linear(_WIDTH, _WIDTH) for _ in range(4))
        self.inner, self.outer = nn.Linear(_WIDTH, _INNER), nn.Linear(_INNER, _WIDTH)
        self.attention_norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, blocked: Tensor) -> Tensor:
        """`blocked` is added to the attention scores: 0 for tokens, a large negative number for padding."""
        query, key, value = (_split(linear(states)) for linear in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(_WIDTH // _HEADS) + blocked
        mixed = self.dropout(scores.softmax(-1)) @ value
        mixed = mixed.transpose(1, 2).flatten(2)
        states = self.attention_norm(states + self.dropout(self.attended(mixed)))
        inner = nn.functional.gelu(self.inner(states))
        return self.norm(states + self.dropout(self.outer(inner)))


class Encoder(nn.Module):
    """Reads word vectors and answers the questions of its heads, as logits."""

    def __init__(self, heads: tuple[Head, ...], layers: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.positions, self.types = nn.Embedding(_POSITIONS, _WIDTH), nn.Embedding(_TYPES, _WIDTH)
        self.norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(layers))
        self.answers = nn.ModuleList(
            nn.Linear(_WIDTH if head.each_token else 2 * _WIDTH, len(head.classes)) for head in heads
        )

    def forward(self, words: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of each head: a row a text, or a row a token."""
        places = torch.arange(words.shape[1], device=words.device)
        states = self.dropout(self.norm(words + self.positions(places) + self.types(types)))
        present = mask.to(states.dtype)
        blocked = (1.0 - present)[:, None, None, :] * -10_000.0
        for layer in self.layers:
            states = layer(states, blocked)
        weights = present[..., None]
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        whole = torch.cat([states[:, 0], mean], dim=-1)
        return tuple(
            answer(self.dropout(states if head.each_token else whole))
            for head, answer in zip(self.heads, self.answers, strict=True)
        )

    def load_trunk(self, base: Path) -> None:
        """Start from the base encoder, from as many of its first layers as this one has."""
        weights = {name: value.float() for name, value in load_file(base / TRUNK_FILE).items()}
        own = {name: weights[_base_name(name)] for name in self.state_dict() if not name.startswith("answers.")}
        missing, unexpected = self.load_state_dict(own, strict=False)
        assert not unexpected
        assert all(name.startswith("answers.") for name in missing)


_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "norm": "output.LayerNorm",
}
_OUTSIDE = {
    "positions": "embeddings.position_embeddings",
    "types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}


def _base_name(name: str) -> str:
    """The name that a parameter has in the base encoder's file."""
    parts = name.split(".")
    if parts[0] == "layers":
        return f"encoder.layer.{parts[1]}.{_NAMES[parts[2]]}.{parts[3]}"
    return f"{_OUTSIDE[parts[0]]}.{parts[1]}"


def _split(states: Tensor) -> Tensor:
    return states.unflatten(-1, (_HEADS, _WIDTH // _HEADS)).transpose(1, 2)
