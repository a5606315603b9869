"""Training: batches of texts of similar length, AdamW, a linear warm-up and decay, one loss for every reader.

What is known of an example is the set of classes that may be right. One class is the usual case; several say
that only so much is known ("not a contradiction"); all of them say nothing, and give no loss.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.answers import Head
from training.base import word_table
from training.encoder import Encoder

Report = Callable[[str], None]


@dataclass(frozen=True)
class Example:
    """One text or pair in tokens; `allowed` has a row of classes for each head, or for each token of its head."""

    tokens: NDArray[np.int32]
    types: NDArray[np.int8]
    allowed: tuple[NDArray[np.bool_], ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Plan:
    """How long and how fast a reader is trained."""

    rate: float
    layers: int = 6
    epochs: int = 3
    batch: int = 128
    head_factor: float = 5.0
    warm_up: float = 0.06
    dropout: float = 0.1
    seed: int = 7


class Trained:
    """An encoder together with the word table that it reads."""

    def __init__(self, encoder: Encoder, words: Tensor) -> None:
        self.encoder, self.words = encoder, words

    def logits(self, examples: Sequence[Example], size: int = 256) -> list[tuple[NDArray[np.float32], ...]]:
        """Return the logits of every example and head."""
        self.encoder.eval()
        answers: list[tuple[NDArray[np.float32], ...] | None] = [None] * len(examples)
        order = sorted(range(len(examples)), key=lambda place: len(examples[place].tokens))
        with torch.inference_mode():
            for start in range(0, len(order), size):
                places = order[start : start + size]
                outputs = self.encoder(*_inputs([examples[place] for place in places], self.words))
                for row, place in enumerate(places):
                    length = len(examples[place].tokens)
                    answers[place] = tuple(
                        (output[row, :length] if head.each_token else output[row]).float().cpu().numpy()
                        for head, output in zip(self.encoder.heads, outputs, strict=True)
                    )
        return [answer for answer in answers if answer is not None]


def train(heads: tuple[Head, ...], examples: Sequence[Example], base: Path, plan: Plan, report: Report) -> Trained:
    """Train an encoder with these heads on the examples."""
    # Every training of a reader starts from the same heads, so that trainings with other seeds can be averaged.
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    words = torch.tensor(word_table(base), device=device)
    encoder = Encoder(heads, plan.layers, plan.dropout)
    encoder.load_trunk(base)
    torch.manual_seed(plan.seed)
    encoder.to(device)
    answers = [*encoder.answers.parameters()]
    known = {id(parameter) for parameter in answers}
    trunk = [parameter for parameter in encoder.parameters() if id(parameter) not in known]
    optimizer = torch.optim.AdamW(
        [{"params": trunk, "lr": plan.rate}, {"params": answers, "lr": plan.rate * plan.head_factor}],
        weight_decay=0.01,
    )
    total = plan.epochs * -(-len(examples) // plan.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, total, plan.warm_up))
    started, seen = time.monotonic(), 0.0
    for step, batch in enumerate(_batches(examples, plan)):
        encoder.train()
        with torch.autocast(device, dtype=torch.bfloat16):
            outputs = encoder(*_inputs(batch, words))
        loss = _loss(heads, outputs, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            seen = loss.item()
            report(f"step {step + 1} of {total}, loss {seen:.3f}, {time.monotonic() - started:.0f} s")
    return Trained(encoder, words)


def _rate(step: int, total: int, warm_up: float) -> float:
    rising = max(1, round(total * warm_up))
    return (step + 1) / rising if step < rising else max(0.0, (total - step) / max(1, total - rising))


def _batches(examples: Sequence[Example], plan: Plan) -> Iterator[list[Example]]:
    """Batches of similar length, in another random order each epoch."""
    chance = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
    for _ in range(plan.epochs):
        order = list(range(len(examples)))
        chance.shuffle(order)
        group = plan.batch * 50
        batches: list[list[int]] = []
        for start in range(0, len(order), group):
            places = sorted(order[start : start + group], key=lambda place: len(examples[place].tokens))
            batches += [places[first : first + plan.batch] for first in range(0, len(places), plan.batch)]
        chance.shuffle(batches)
        for places in batches:
            yield [examples[place] for place in places]


def _inputs(batch: Sequence[Example], words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    length = max(len(example.tokens) for example in batch)
    tokens = np.zeros((len(batch), length), np.int64)
    mask = np.zeros((len(batch), length), np.int64)
    types = np.zeros((len(batch), length), np.int64)
    for row, example in enumerate(batch):
        size = len(example.tokens)
        tokens[row, :size], types[row, :size], mask[row, :size] = example.tokens, example.types, 1
    device = words.device
    return (
        words[torch.from_numpy(tokens).to(device)],
        torch.from_numpy(mask).to(device),
        torch.from_numpy(types).to(device),
    )


def _loss(heads: tuple[Head, ...], outputs: tuple[Tensor, ...], batch: Sequence[Example]) -> Tensor:
    """The mean over what is known: minus the logarithm of the probability of the allowed classes together."""
    device = outputs[0].device
    weights = torch.tensor([example.weight for example in batch], device=device)
    total = torch.zeros((), device=device)
    for place, (head, output) in enumerate(zip(heads, outputs, strict=True)):
        shape = output.shape[:-1]
        allowed = np.ones((*shape, len(head.classes)), bool)
        for row, example in enumerate(batch):
            known = example.allowed[place]
            if head.each_token:
                allowed[row, : len(known)] = known
            else:
                allowed[row] = known
        right = torch.from_numpy(allowed).to(device)
        logits = output.float()
        losses = logits.logsumexp(-1) - logits.masked_fill(~right, -1e9).logsumexp(-1)
        informative = (~right).any(-1).float() * (weights[:, None] if head.each_token else weights)
        total = total + (losses * informative).sum() / informative.sum().clamp(min=1.0)
    return total
