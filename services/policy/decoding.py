"""One batch of prompts to answers: prefill, then token by token with a KV cache.

Plain synchronous torch; queueing, versions and locking are `services.policy.batching`.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from transformers import DynamicCache

from services.policy.engine import Answer, Prompt
from services.policy.features import FeatureCache
from services.policy.sampling import choose, uniforms
from services.policy.stops import StopSearch
from wmkit.domain.generation import FinishReason, Sampling
from wmkit.modeling import Batch, Loaded
from wmkit.modeling.forward import Features, embed, logits


def _never(row: int) -> bool:
    return False


def _nothing() -> None:
    pass


@torch.inference_mode()
def generate(
    loaded: Loaded,
    prompts: Sequence[Prompt],
    features: FeatureCache,
    abandoned: Callable[[int], bool] = _never,
    prefilled: Callable[[], None] = _nothing,
) -> list[Answer]:
    """Answers to all `prompts`, none depending on its neighbours in the batch.

    A row for which `abandoned` turns true ends early, with what it has. `prefilled` is called
    once, when every row has its first token.
    """
    batch = loaded.pack([p.ids for p in prompts], [p.images for p in prompts], pad_side="left")
    state = _State(loaded, batch, [p.sampling for p in prompts])
    rows = [_Row(loaded, p.sampling) for p in prompts]
    slots = list(range(len(rows)))
    hidden = state.prefill(features.of(loaded.model, batch))
    while True:
        tokens, logprobs = state.choose(hidden)
        if slots and not rows[slots[0]].answer.token_ids:
            prefilled()
        for i, token, logprob in zip(slots, tokens.tolist(), logprobs.tolist(), strict=True):
            if not rows[i].done:
                rows[i].add(token, logprob)
                rows[i].done |= abandoned(i)
        live = [slot for slot, i in enumerate(slots) if not rows[i].done]
        if not live:
            return [row.answer for row in rows]
        # Copying the cache costs about what one step's concatenation does.
        if len(live) <= 0.75 * len(slots):
            slots = [slots[slot] for slot in live]
            tokens = state.keep(live, tokens)
        hidden = state.advance(tokens)


class _Row:
    """One answer as it grows."""

    def __init__(self, loaded: Loaded, sampling: Sampling) -> None:
        self.answer = Answer()
        self.done = False
        self._loaded = loaded
        self._limit = sampling.max_new_tokens
        self._search = StopSearch(sampling.stop)

    def add(self, token: int, logprob: float) -> None:
        answer = self.answer
        answer.token_ids.append(token)
        answer.logprobs.append(logprob)
        if token in self._loaded.end_ids:
            answer.reason, self.done = FinishReason.END, True
        elif stop := self._search.feed(self._loaded.chat.token_bytes(token)):
            answer.reason, answer.stop, self.done = FinishReason.STOP, stop, True
        elif len(answer.token_ids) >= self._limit:
            self.done = True


class _State:
    """Cache, masks, positions and sampling parameters of the rows still in the batch."""

    def __init__(self, loaded: Loaded, batch: Batch, sampling: Sequence[Sampling]) -> None:
        self._model = loaded.model
        self._batch = batch
        device = batch.input_ids.device
        steps = max(s.max_new_tokens for s in sampling)
        numbers = np.zeros((len(sampling), steps))
        for row, s in enumerate(sampling):
            if s.temperature > 0:
                numbers[row, : s.max_new_tokens] = uniforms(s.seed, s.max_new_tokens)
        self._uniform = torch.from_numpy(numbers).to(device)
        self._temperature = torch.tensor([s.temperature for s in sampling], device=device)
        # The mask covers the whole length of the cache at every step, and positions are
        # always given: left to itself, the model gets both wrong after a picture.
        ones = batch.attention_mask.new_ones(len(sampling), steps)
        self._mask = torch.cat([batch.attention_mask, ones], dim=1)
        self._next = batch.next_position
        self._length = batch.input_ids.shape[1]
        self._step = 0
        self._cache = DynamicCache(config=loaded.model.config.text_config)

    def prefill(self, features: Sequence[Features]) -> torch.Tensor:
        """Hidden state [B, hidden] after the prompts."""
        out = self._model.model.language_model(
            **embed(self._model, self._batch, features),
            attention_mask=self._batch.attention_mask,
            position_ids=self._batch.position_ids,
            past_key_values=self._cache,
            use_cache=True,
        )
        hidden: torch.Tensor = out.last_hidden_state[:, -1]
        return hidden

    def choose(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = logits(self._model, hidden)
        return choose(scores, self._temperature, self._uniform[:, self._step])

    def advance(self, tokens: torch.Tensor) -> torch.Tensor:
        """Hidden state [B, hidden] after one more token [B] in each row."""
        position = (self._next + self._step)[None, :, None].expand(3, -1, -1)
        self._step += 1
        out = self._model.model.language_model(
            inputs_embeds=self._model.get_input_embeddings()(tokens[:, None]),
            attention_mask=self._mask[:, : self._length + self._step],
            position_ids=position,
            past_key_values=self._cache,
            use_cache=True,
        )
        hidden: torch.Tensor = out.last_hidden_state[:, -1]
        return hidden

    def keep(self, slots: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        """Drop all rows but `slots`; returns their `tokens`."""
        index = torch.tensor(slots, device=tokens.device)
        self._cache.batch_select_indices(index)
        self._uniform, self._temperature = self._uniform[index], self._temperature[index]
        self._mask, self._next = self._mask[index], self._next[index]
        return tokens[index]
