"""The supervised cold start: next-token loss plus three losses that teach it to see.

Next-token loss alone leaves pointing at chance for thousands of steps. Two losses with one
label per image token make it short: what is drawn in each cell, read off the vision features,
and which cell the goal points at, read off the language model's last layer (so the goal has
to stand before the picture in the prompt). The third gives named heads of the last layer
something to look at: the image token of the thing whose coordinates are being written. A
thing without a word gives its coordinates no other handle.
"""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
from demonstrations import COLUMNS, ROWS, Example, Examples, labels
from PIL import Image
from torch.nn.functional import cross_entropy

from wmkit.domain.generation import Picture
from wmkit.modeling.chat import ChatEncoder
from wmkit.modeling.forward import embed, encode_images
from wmkit.modeling.images import EncodedPixels
from wmkit.modeling.packing import Batch, pack

CELLS = COLUMNS * ROWS
GRID = (1, 2 * ROWS, 2 * COLUMNS)
# Tokens that are almost certain must not drown the ones that decide.
EASY_WEIGHT = 0.15
NOTHING_WEIGHT = 0.1
CELL_LOSS, POINTER_LOSS, ATTENTION_LOSS = 0.5, 1.0, 0.3
# Heads of the last layer that look at the target: while x is written, while y is written.
X_HEADS, Y_HEADS = (1,), (0, 3)
BATCH = 32
# Share of the demonstrations in which looking ahead pays.
LOOKING_AHEAD = 0.25


@dataclass(frozen=True)
class Sample:
    """An example in tokens; `weights` are 0 on everything that is not learnt."""

    ids: list[int]
    weights: list[float]
    screens: tuple[str, ...]
    flags: tuple[dict[int, str], ...]
    looks: tuple[tuple[int, int, int], ...]
    """(position, head, position of the image token) that the attention loss pulls together."""
    answer: tuple[int, int]
    """Where the first stretch that the agent writes begins and ends, for exact match."""


class Corpus:
    """Samples by kind, drawn in the proportions of the curriculum."""

    def __init__(self, examples: Examples, tokenizer: Any, easy: Sequence[str]) -> None:
        encoder = ChatEncoder(tokenizer, len(tokenizer))
        easy_ids = set(tokenizer.convert_tokens_to_ids(list(easy)))

        def samples(kind: list[Example]) -> list[Sample]:
            return [to_sample(example, tokenizer, encoder, easy_ids) for example in kind]

        self.demonstrations = samples(examples.demonstrations)
        self.looking_ahead = samples(examples.looking_ahead)
        self.pointing = samples(examples.pointing)
        self.reading = samples(examples.reading)

    def draw(self, count: int, progress: float, rng: Random) -> list[Sample]:
        """The screen first, then the task: reading and pointing fade out."""
        reading = 0.40 - 0.30 * min(1.0, 2 * progress)
        pointing = 0.30 - 0.20 * progress
        out = []
        for _ in range(count):
            u = rng.random()
            if u < reading:
                kind = self.reading
            elif u < reading + pointing:
                kind = self.pointing
            elif rng.random() < LOOKING_AHEAD:
                kind = self.looking_ahead
            else:
                kind = self.demonstrations
            out.append(rng.choice(kind))
        return out


def to_sample(example: Example, tokenizer: Any, encoder: ChatEncoder, easy: set[int]) -> Sample:
    """Tokens exactly as the policy service and the rollout worker join them."""

    def pictures(turns: Sequence[Any]) -> list[int]:
        return [CELLS for turn in turns for part in turn.parts if isinstance(part, Picture)]

    ids = encoder.encode(example.prompt, pictures(example.prompt))
    picture = ids.index(encoder.image_id)
    weights = [0.0] * len(ids)
    spans, looks = [], []
    targets = iter(example.targets)
    for i, piece in enumerate(example.script):
        if isinstance(piece, str):
            written = tokenizer.encode(piece, add_special_tokens=False)
            if i == len(example.script) - 1:
                written = [*written, encoder.turn_end_id]
            target = next(targets)
            if target is not None:
                key = picture + int(target.y * ROWS) * COLUMNS + int(target.x * COLUMNS)
                x, y = _coordinates(tokenizer.convert_ids_to_tokens(written))
                looks += [(len(ids) + x + k, h, key) for k in (0, 1) for h in X_HEADS]
                looks += [(len(ids) + y + k, h, key) for k in (0, 1) for h in Y_HEADS]
            spans.append((len(ids), len(ids) + len(written)))
            ids += written
            weights += [EASY_WEIGHT if token in easy else 1.0 for token in written]
        else:
            glue = [encoder.turn_end_id, *encoder.text_ids("\n")]
            glue += encoder.encode([piece], pictures([piece]))
            ids += glue
            weights += [0.0] * len(glue)
    return Sample(ids, weights, example.screens, example.flags, tuple(looks), spans[0])


def _coordinates(tokens: Sequence[str]) -> tuple[int, int]:
    """Where "(" and "," of the last box stand: they predict the first digits of x and y."""
    box = len(tokens) - 1 - tokens[::-1].index("<|box_start|>")
    return box + 1, tokens.index(",", box)


class Screens:
    """Pictures as the image processor leaves them, kept as bytes: 123 kB each.

    Does what the processor does to a 128 x 320 result (bicubic resize, scale to [-1, 1],
    patches in merge order) some ten times faster; raises ValueError where the two differ.
    """

    def __init__(self, encode: Callable[[bytes], EncodedPixels], pngs: dict[str, bytes]) -> None:
        self._rows = {digest: i for i, digest in enumerate(pngs)}
        self._patches = np.stack([_patches(png) for png in pngs.values()])
        for digest in list(pngs)[:20]:
            theirs = encode(pngs[digest])
            if theirs.grid_thw != GRID or not torch.allclose(
                theirs.pixel_values, self[digest].pixel_values, atol=1e-6
            ):
                raise ValueError("the image processor does something else to a screen")

    def __getitem__(self, digest: str) -> EncodedPixels:
        still = torch.from_numpy(self._patches[self._rows[digest]]).float() / 127.5 - 1
        values = still[:, :, None].expand(-1, -1, 2, -1, -1).reshape(CELLS * 4, -1)
        return EncodedPixels(digest, values, GRID, 32 * COLUMNS, 32 * ROWS, CELLS)


def _patches(png: bytes) -> Any:
    """uint8 [160, 3, 16, 16]: the patches of each 2 x 2 block stand together."""
    with Image.open(io.BytesIO(png)) as source:
        small = source.convert("RGB").resize((32 * COLUMNS, 32 * ROWS), Image.Resampling.BICUBIC)
    pixels = np.asarray(small).reshape(ROWS, 2, 16, COLUMNS, 2, 16, 3)
    return pixels.transpose(0, 3, 1, 4, 6, 2, 5).reshape(CELLS * 4, 3, 16, 16)


class Trainer:
    """One model in training; `words` maps a screen to the 40 label ids of its cells."""

    def __init__(
        self, model: Any, tokenizer: Any, screens: Screens, examples: Examples, seed: int
    ) -> None:
        self.model, self.screens = model, screens
        self.encoder = ChatEncoder(tokenizer, len(tokenizer))
        self.rng = Random(seed)
        self.nothing = int(tokenizer.pad_token_id)
        self._first_token = {"": self.nothing}
        self._tokenizer = tokenizer
        # The attention loss needs the weights, which only this implementation gives.
        model.set_attn_implementation({"text_config": "eager"})
        self.rare = torch.ones(len(tokenizer))
        self.rare[self.nothing] = NOTHING_WEIGHT
        self.words = {
            digest: [self.token(word and f" {word}") for word in labels(phone)]
            for digest, phone in examples.screens.items()
        }

    def token(self, word: str) -> int:
        """The label of a word: its first token."""
        if word not in self._first_token:
            ids = self._tokenizer.encode(word, add_special_tokens=False)
            self._first_token[word] = ids[0]
        return self._first_token[word]

    def pack(self, samples: Sequence[Sample]) -> Batch:
        return pack(
            [sample.ids for sample in samples],
            [[self.screens[digest] for digest in sample.screens] for sample in samples],
            pad_side="right",
            pad_id=self.nothing,
            image_id=self.encoder.image_id,
            merge_size=2,
        )

    def loss(self, samples: Sequence[Sample]) -> tuple[torch.Tensor, dict[str, float]]:
        model, batch = self.model, self.pack(samples)
        features = encode_images(model, batch.pixel_values, batch.image_grid_thw)
        out = model.model.language_model(
            **embed(model, batch, features),
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            use_cache=False,
            output_attentions=True,
        )
        hidden = out.last_hidden_state
        weights = torch.zeros(batch.input_ids.shape)
        for row, sample in enumerate(samples):
            weights[row, : len(sample.weights)] = torch.tensor(sample.weights)
        learnt = weights[:, 1:] > 0
        each = cross_entropy(
            model.lm_head(hidden[:, :-1][learnt]), batch.input_ids[:, 1:][learnt], reduction="none"
        )
        tokens = (each * weights[:, 1:][learnt]).sum() / weights.sum()

        seen = torch.cat([feature.tokens for feature in features])
        distinct = dict.fromkeys(digest for sample in samples for digest in sample.screens)
        drawn = torch.tensor([self.words[digest] for digest in distinct])
        cells = cross_entropy(model.lm_head(seen), drawn.flatten(), weight=self.rare)

        flags = []
        for sample in samples:
            for words in sample.flags:
                row = [self.nothing] * CELLS
                for cell, word in words.items():
                    row[cell] = self.token(word)
                flags += row
        points = cross_entropy(
            model.lm_head(hidden[batch.image_tokens]), torch.tensor(flags), weight=self.rare
        )
        looks = torch.tensor([(i, *look) for i, s in enumerate(samples) for look in s.looks])
        row, at, head, key = looks.T
        looked = -(out.attentions[-1][row, head, at, key] + 1e-6).log().mean()
        total = tokens + CELL_LOSS * cells + POINTER_LOSS * points + ATTENTION_LOSS * looked
        return total, {
            "tokens": tokens.item(),
            "cells": cells.item(),
            "points": points.item(),
            "looks": looked.item(),
        }

    @torch.no_grad()
    def exact(self, samples: Sequence[Sample]) -> float:
        """Share of samples whose whole first stretch is the greedy choice, token by token."""
        self.model.eval()
        right = 0
        for start in range(0, len(samples), BATCH):
            part = samples[start : start + BATCH]
            batch = self.pack(part)
            features = encode_images(self.model, batch.pixel_values, batch.image_grid_thw)
            hidden = self.model.model.language_model(
                **embed(self.model, batch, features),
                attention_mask=batch.attention_mask,
                position_ids=batch.position_ids,
                use_cache=False,
            ).last_hidden_state
            for row, sample in enumerate(part):
                begin, end = sample.answer
                guess = self.model.lm_head(hidden[row, begin - 1 : end - 1]).argmax(-1)
                right += bool((guess == batch.input_ids[row, begin:end]).all())
        return right / len(samples)

    def train(
        self,
        corpus: Corpus,
        learning_rate: float,
        schedule: Callable[[int], float],
        report: Callable[[int, dict[str, float]], None],
        *,
        mature: bool = False,
    ) -> None:
        """AdamW with 50 warm-up steps and a cosine, until `schedule(step)` reaches 1.

        `mature` starts where the curriculum ends.
        """
        optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.01
        )
        step = 0
        while (progress := schedule(step)) < 1:
            for group in optimizer.param_groups:
                group["lr"] = (
                    learning_rate
                    * min(1.0, (step + 1) / 50)
                    * (0.5 * (1 + math.cos(math.pi * progress)) + 0.02)
                )
            self.model.train()
            loss, parts = self.loss(corpus.draw(BATCH, 1.0 if mature else progress, self.rng))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            report(step, parts)
