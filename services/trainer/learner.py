"""The model, its optimizer and the update step. Synchronous: one thread owns a Learner.

It plays nothing and talks to no service; pictures come as encoded bytes by digest. With several
processes each has a Learner, all of them are called alike, and each takes a part of the samples.
"""

import copy
import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save as serialize
from torch import Tensor

from services.trainer import adapters, losses
from services.trainer.batches import Sample, rounds
from services.trainer.recipe import Recipe
from services.trainer.schedules import learning_rate
from services.trainer.sharding import Scorer, shard, whole
from services.trainer.tally import Tally
from services.trainer.world import World
from wmkit.domain.errors import WMError
from wmkit.modeling import Batch, EncodedPixels, load, probe_logprobs
from wmkit.modeling.weights import own_tensors

T = TypeVar("T")
ALONE = World()
ADAPTER = "adapter"
"""Folder of a saved checkpoint that holds the adapters alone, as peft reads them."""


class BadSample(WMError):
    """A sample that cannot be trained on: not finite, or not what was sampled."""


class Stopped(WMError):
    """The run was cancelled between two forward passes; the weights are those before."""


class Learner:
    """AdamW on the checkpoint of a recipe.

    Raises BadCheckpoint when the folder cannot be loaded.
    """

    def __init__(self, recipe: Recipe, *, device: str = "cpu", world: World = ALONE) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.device = device
        self.world = world
        # Sharding moves a model to its device slice by slice.
        self.loaded = load(recipe.checkpoint, device="cpu" if world.grouped else device)
        self.model = self.loaded.model
        self.model.train()
        self.stop = threading.Event()
        """Set from another thread to end a running update early."""
        self.steps = 0
        self.random = random.Random(recipe.seed)
        self._start: dict[str, Tensor] = {}
        """By sample, its log-probabilities before the iteration's first step, where needed."""
        everywhere = world.size > 1
        self._reference: Scorer | None = None
        if recipe.lora.rank:
            adapters.adapt(self.model, recipe.lora)
        elif recipe.loss.kl_beta > 0:
            fixed = copy.deepcopy(self.model).eval().requires_grad_(False)
            self._reference = Scorer(fixed, everywhere=everywhere)
        if recipe.optimizer.gradient_checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        self.scorer = Scorer(self.model, everywhere=everywhere)
        if world.grouped:
            dtype = getattr(torch, recipe.optimizer.dtype)
            for scorer in filter(None, (self.scorer, self._reference)):
                shard(scorer, world, device, dtype)
        self.optimizer = _adamw(self.model, recipe)

    @property
    def processor(self) -> str:
        """Digest of image processor and tokenizer, to compare with the policy's."""
        return str(self.loaded.processor_digest)

    def weights(self) -> bytes:
        """The weights as safetensors, for the policy service; empty at ranks that do not lead."""
        tensors = self._tensors()
        data: bytes = serialize(self._plain(tensors)) if self.world.leads else b""
        return data

    def probe(self) -> list[float]:
        """The canary's log-probabilities under the weights, for the policy service to compare.

        Empty (no canary) where no process holds the whole model.
        """
        return [] if self.world.grouped else probe_logprobs(self.loaded)

    def save(self, folder: Path) -> None:
        """Write a complete checkpoint folder; adapters also on their own, in `adapter/`."""
        tensors = self._tensors()
        if not self.world.leads:
            return
        plain, lora = self._plain(tensors), self.recipe.lora
        self.model.save_pretrained(str(folder), state_dict=plain, safe_serialization=True)
        self.loaded.tokenizer.save_pretrained(str(folder))
        self.loaded.images.processor.save_pretrained(str(folder))
        if lora.rank:
            adapters.save_adapter(tensors, lora, folder / ADAPTER, self.recipe.checkpoint)

    def _tensors(self) -> dict[str, Tensor]:
        """All tensors of the model, whole and on the CPU, where this process leads."""
        out: dict[str, Tensor] = {}
        for name, tensor in own_tensors(self.model).items():
            full = whole(tensor.detach())
            if self.world.leads:
                out[name] = full.cpu().contiguous()
        return out

    def _plain(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Those of a model without adapters, in the type that is computed in."""
        lora, dtype = self.recipe.lora, getattr(torch, self.recipe.optimizer.dtype)
        plain = adapters.merged(tensors, lora) if lora.rank else tensors
        return {n: t.to(dtype) if t.is_floating_point() else t for n, t in plain.items()}

    def update(self, samples: Sequence[Sample], images: Mapping[str, bytes]) -> dict[str, float]:
        """Train on an iteration's samples; `images` holds every picture they name.

        Returns metrics (see docs/metrics.md). Raises BadSample, before any weight has
        changed in the current optimizer step, for a sample that is not finite or does not
        match its pictures; Stopped when `stop` was set.
        """
        started = time.perf_counter()
        optimizer = self.recipe.optimizer
        tally = Tally()
        self._start = {}
        if self.recipe.loss.correction != "none" and optimizer.epochs * optimizer.minibatches > 1:
            self._start = self._score(samples, images)
        on_policy = True
        for _ in range(optimizer.epochs):
            order = list(samples)
            # One step over everything needs no shuffling, and the sum's order stays fixed.
            if optimizer.minibatches > 1:
                self.random.shuffle(order)
            parts = [order[i :: optimizer.minibatches] for i in range(optimizer.minibatches)]
            for part in filter(None, parts):
                self._step(part, samples, images, tally, on_policy)
                on_policy = False
        elapsed = time.perf_counter() - started
        tally.merge(self.world)
        metrics = tally.metrics()
        metrics["tokens_per_s"] = sum(len(s.token_ids) for s in samples) / elapsed
        return metrics

    def _step(
        self,
        part: Sequence[Sample],
        iteration: Sequence[Sample],
        images: Mapping[str, bytes],
        tally: Tally,
        on_policy: bool,
    ) -> None:
        recipe = self.recipe
        weights = losses.token_weights(
            recipe.loss.aggregation,
            [s.sampled for s in part],
            [s.episode for s in part],
            step_share=1 / recipe.optimizer.minibatches,
            iteration_tokens=sum(s.sampled for s in iteration),
            constant_tokens=recipe.loss.constant_tokens,
        )
        self.optimizer.zero_grad(set_to_none=True)
        step_loss = 0.0
        for mine in self._rounds(part):
            # Who has nothing to do takes part all the same, with a sample that does not count.
            chosen = [part[i] for i in mine] or [min(part, key=lambda s: len(s.token_ids))]
            own = [weights[i] for i in mine] or [0.0]
            loss = self.loss(chosen, own, images, tally if mine else Tally(), on_policy)
            loss.backward()  # type: ignore[no-untyped-call]
            step_loss += loss.item()
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for parameter in parameters:
            if parameter.grad is None:  # nothing of it was used, in any process
                parameter.grad = torch.zeros_like(parameter)
        norm = torch.nn.utils.clip_grad_norm_(parameters, recipe.optimizer.grad_clip)
        norm_value = float(whole(norm))
        if not math.isfinite(norm_value):
            raise BadSample(f"the gradient is not finite; {self._culprit(part, weights, images)}")
        self.steps += 1
        lr = learning_rate(self.steps, recipe)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        tally.step(self.world.total([step_loss])[0], norm_value, lr)

    def _rounds(self, samples: Sequence[Sample]) -> Iterator[list[int]]:
        """This process's micro-batch of each round, as indices; raises Stopped in between."""
        budget = self.recipe.optimizer.micro_batch_tokens
        lengths = [len(s.token_ids) for s in samples]
        for turn in rounds(lengths, budget, self.world.size):
            if self.world.order(self.stop.is_set() if self.world.leads else None):
                raise Stopped("the update was stopped")
            yield turn[self.world.rank]

    def _agreed(self, work: Callable[[], T]) -> T:
        """Do `work`; a sample that is bad in one process is bad in all, so none waits alone."""
        if self.world.size == 1:
            return work()
        done: list[T] = []
        complaint = ""
        try:
            done.append(work())
        except BadSample as error:
            complaint = error.message
        if complaint := self.world.complaint(complaint):
            raise BadSample(complaint)
        return done[0]

    def loss(
        self,
        samples: Sequence[Sample],
        weights: Sequence[float],
        images: Mapping[str, bytes],
        tally: Tally,
        on_policy: bool,
    ) -> Tensor:
        """The weighted loss (a scalar with gradient) of one micro-batch."""
        recipe = self.recipe
        batch, select = self._agreed(lambda: self.pack(samples, images))
        temperature = recipe.episode.temperature
        reference = None
        if recipe.loss.kl_beta > 0:
            fixed = nullcontext() if self._reference else adapters.without(self.model)
            with torch.no_grad(), fixed:
                reference = (self._reference or self.scorer)(batch, select, temperature)
        logprobs = self.scorer(batch, select, temperature)
        sampler = torch.tensor(
            [p for s in samples for p, m in zip(s.logprobs, s.mask, strict=True) if m],
            device=self.device,
        )
        counts = torch.tensor([s.sampled for s in samples])
        answers = torch.arange(len(samples)).repeat_interleave(counts).to(self.device)

        def spread(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, device=self.device)[answers]

        old, correction = sampler, None
        if recipe.loss.correction != "none":
            kept = [self._start[s.name] for s in samples if s.name in self._start]
            old = torch.cat(kept) if kept else logprobs.detach()
            correction = losses.sampler_correction(old, sampler, recipe.loss, answers)
        token = losses.policy_losses(
            logprobs, old, spread([s.advantage for s in samples]), recipe.loss, answers
        )
        values = token.loss if correction is None else token.loss * correction
        divergence = None
        if reference is not None:
            divergence = losses.k3(logprobs, reference)
            values = values + recipe.loss.kl_beta * divergence
        finite = torch.isfinite(values)

        def check() -> None:
            if not bool(finite.all()):
                row = int(answers[~finite][0])
                raise BadSample(f"the loss of {samples[row].name} is not finite")

        self._agreed(check)
        comparable = on_policy and not any(sample.off_policy for sample in samples)
        tally.tokens(token, logprobs.detach(), sampler, divergence, correction, comparable)
        return (values * spread(weights)).sum()

    def _score(self, samples: Sequence[Sample], images: Mapping[str, bytes]) -> dict[str, Tensor]:
        """Log-probabilities of every sample's sampled tokens under the weights as they are."""
        out: dict[str, Tensor] = {}
        for mine in self._rounds(samples):
            chosen = [samples[i] for i in mine] or [min(samples, key=lambda s: len(s.token_ids))]
            batch, select = self._agreed(partial(self.pack, chosen, images))
            with torch.no_grad():
                scores = self.scorer(batch, select, self.recipe.episode.temperature)
            parts = torch.split(scores, [s.sampled for s in chosen])
            out |= zip((s.name for s in chosen), parts, strict=True)
        if self.world.size == 1:
            return out
        everywhere = self.world.share({name: scores.cpu() for name, scores in out.items()})
        return {n: scores.to(self.device) for found in everywhere for n, scores in found.items()}

    def pack(self, samples: Sequence[Sample], images: Mapping[str, bytes]) -> tuple[Batch, Tensor]:
        """The batch of `samples` and bool [B, L], true on exactly their sampled tokens.

        Raises BadSample for a sample that does not match its pictures.
        """
        for sample in samples:
            if sample.mask[0]:
                raise BadSample(f"{sample.name} begins with a sampled token: it has no prompt")
            if len(sample.token_ids) > self.loaded.context:
                raise BadSample(
                    f"{sample.name} has {len(sample.token_ids)} tokens, the model takes "
                    f"{self.loaded.context}"
                )
        pixels = [self._pixels(sample, images) for sample in samples]
        try:
            batch = self.loaded.pack(
                [s.token_ids for s in samples], pixels, names=[s.name for s in samples]
            )
        except ValueError as error:
            raise BadSample(str(error)) from error
        select = torch.zeros_like(batch.input_ids, dtype=torch.bool)
        for row, sample in enumerate(samples):
            select[row, : len(sample.mask)] = torch.tensor(sample.mask, dtype=torch.bool)
        return batch, select

    def _pixels(self, sample: Sample, images: Mapping[str, bytes]) -> list[EncodedPixels]:
        """Raises BadSample when processor or patch grid are not those of sampling."""
        if sample.processor != self.processor:
            raise BadSample(
                f"{sample.name} was sampled with processor {sample.processor[:12]}, but the "
                f"trainer's is {self.processor[:12]}"
            )
        encoder = self.loaded.images
        out = []
        for ref in sample.images:
            encoded = encoder.cached(ref.digest) or encoder.encode(images[ref.digest])
            if encoded.grid_thw != ref.grid_thw:
                raise BadSample(
                    f"{sample.name}: picture {ref.digest[:12]} was sampled as {ref.grid_thw} "
                    f"patches, but is {encoded.grid_thw} here"
                )
            out.append(encoded)
        return out

    def _culprit(
        self, samples: Sequence[Sample], weights: Sequence[float], images: Mapping[str, bytes]
    ) -> str:
        """Find, one by one, the sample whose gradient is not finite; the run ends anyway."""
        for sample, weight in zip(samples, weights, strict=True):
            self.optimizer.zero_grad(set_to_none=True)
            self.loss([sample], [weight], images, Tally(), False).backward()  # type: ignore[no-untyped-call]
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            if not math.isfinite(float(whole(norm))):
                return f"it comes from {sample.name}"
        return "no single sample is to blame"


def _adamw(model: Any, recipe: Recipe) -> torch.optim.AdamW:
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.dim() >= 2]},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups,
        lr=recipe.optimizer.lr,
        betas=recipe.optimizer.betas,
        weight_decay=recipe.optimizer.weight_decay,
        fused=True,
    )
