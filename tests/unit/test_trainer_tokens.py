"""Tokens in = tokens out: what was sampled is what reaches the loss, id by id.

Episodes are played by the rollout worker's own `play`. The policy is a real tiny model with
the real framing and pictures; what it says is either sampled (LocalPolicy) or scripted and
scored by one forward per stretch, because a random model never writes a readable action.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from services.policy.batching import BatchEngine
from services.policy.policy import LocalPolicy
from services.rollout.episode import play
from services.trainer import losses
from services.trainer.batches import samples_of
from services.trainer.learner import Learner
from services.trainer.recipe import Recipe
from tests import tiny_checkpoints
from tests.trainer_cases import job, score, segment
from wmkit.domain.actions import Action
from wmkit.domain.episode import Ending, EpisodeSpec, Job, Trajectory
from wmkit.domain.generation import (
    EncodedImage,
    FinishReason,
    Generation,
    Picture,
    PolicyInfo,
    Sampling,
    Turn,
)
from wmkit.domain.tasks import TaskRef
from wmkit.modeling import checkpoint
from wmkit.ports import Policy
from wmkit.testing import FakeWorldModel, MemoryBlobs

TAP = "Action: tap(start_box='<|box_start|>(10,20)<|box_end|>')"
SCRIPT = [
    # step 1: two calls, one chained, then the action
    "<think>I look. <call_wm>press_back()</call_wm>",
    ' And on. <call_wm from="1">press_home()</call_wm>',
    f" Good.</think>\n{TAP}",
    # step 2: nothing special; step 3: a call that cannot be read, and one that can
    "Action: press_back()",
    "<think><call_wm>jump()</call_wm>",
    "<call_wm>press_home()</call_wm>",
    "</think>\nAction: press_home()",
    # step 4
    "<think>Done.</think>\nAction: finished()",
]


class Scripted:
    """Says the lines of a script; ids, framing, pictures and log-probabilities are real."""

    def __init__(self, loaded: checkpoint.Loaded, blobs: MemoryBlobs, script: list[str]) -> None:
        self.loaded = loaded
        self.blobs = blobs
        self.script = list(script)

    async def generate(self, turns: Sequence[Turn], sampling: Sampling, **_: Any) -> Generation:
        chat = self.loaded.chat
        digests = [p.digest for t in turns for p in t.parts if isinstance(p, Picture)]
        pixels = [self.loaded.images.encode(await self.blobs.get(d)) for d in digests]
        prompt = chat.encode(turns, [p.tokens for p in pixels])
        text = self.script.pop(0)
        stopped = any(text.endswith(stop) for stop in sampling.stop)
        ids = [*chat.text_ids(text), *([] if stopped else [chat.turn_end_id])]
        made = segment(prompt, ids)
        return Generation(
            prompt_token_ids=tuple(prompt),
            token_ids=tuple(ids),
            logprobs=tuple(score(self.loaded, made, pixels).tolist()),
            text=text,
            finish_reason=FinishReason.STOP if stopped else FinishReason.END,
            policy_id="run",
            version=0,
            images=tuple(
                EncodedImage(p.digest, p.width_px, p.height_px, p.grid_thw) for p in pixels
            ),
            processor=self.loaded.processor_digest,
            stop=next((stop for stop in sampling.stop if text.endswith(stop)), ""),
        )

    async def update_weights(self, *_: Any, **__: Any) -> int:
        raise NotImplementedError

    async def info(self) -> PolicyInfo:
        raise NotImplementedError


class Recorder:
    """Passes calls on to a policy and keeps the answers, as the truth about what was sampled."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.answers: list[Generation] = []

    async def generate(self, *args: Any, **kwargs: Any) -> Generation:
        answer = await self._policy.generate(*args, **kwargs)
        self.answers.append(answer)
        return answer

    async def update_weights(self, *args: Any, **kwargs: Any) -> int:
        raise NotImplementedError

    async def info(self) -> PolicyInfo:
        raise NotImplementedError


class Loss:
    """Spies on the two places behind which there is only arithmetic: the batch that the model
    gets, and the numbers that the loss gets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[tuple[list[int], list[int], list[str]]] = []
        self.old: list[float] = []
        self.advantages: list[float] = []
        honest_pack, honest_losses = Learner.pack, losses.policy_losses

        def pack(learner: Learner, samples: Any, images: Any) -> Any:
            batch, select = honest_pack(learner, samples, images)
            shown = iter(batch.image_index.tolist())
            for ids, mask, chosen in zip(
                batch.input_ids, batch.attention_mask, select, strict=True
            ):
                kept = mask.bool()
                row = ids[kept].tolist()
                starts = row.count(learner.loaded.chat.vision_start_id)
                pictures = [batch.images[next(shown)].digest for _ in range(starts)]
                self.rows.append((row, chosen[kept].int().tolist(), pictures))
            return batch, select

        def policy_losses(logprobs: Any, old: Any, advantages: Any, *rest: Any) -> Any:
            self.old += old.tolist()
            self.advantages += advantages.tolist()
            return honest_losses(logprobs, old, advantages, *rest)

        monkeypatch.setattr(Learner, "pack", pack)
        monkeypatch.setattr(losses, "policy_losses", policy_losses)


def stretches(answers: Sequence[Generation]) -> list[list[Generation]]:
    """The answers step by step: a step's stretches share their beginning."""
    steps: list[list[Generation]] = []
    for answer in answers:
        if steps and answer.prompt_token_ids[: len(p := steps[-1][-1].prompt_token_ids)] == p:
            steps[-1].append(answer)
        else:
            steps.append([answer])
    return steps


def train(
    folder: Path, spec: EpisodeSpec, episodes: Sequence[Trajectory], images: dict[str, bytes]
) -> dict[str, float]:
    recipe = Recipe.model_validate(
        {
            "checkpoint": str(folder),
            "tasks": {"templates": ["fake"]},
            "episode": spec.model_dump(),
        }
    )
    samples = [s for i, e in enumerate(episodes) for s in samples_of(e, 1.0 - i)]
    learner = Learner(recipe)
    learner.model.config.text_config.max_position_embeddings = 4096
    return learner.update(samples, images)


def assert_reached_the_loss(
    loss: Loss, steps: list[list[Generation]], advantages: Sequence[float]
) -> None:
    """Compare with the answers as they were given; the order of rows is the trainer's own."""
    expected = []
    for taken, advantage in zip(steps, advantages, strict=True):
        last = taken[-1]
        ids = [*last.prompt_token_ids, *last.token_ids]
        mask = [0] * len(ids)
        for answer in taken:
            start = len(answer.prompt_token_ids)
            for i in range(start, start + len(answer.token_ids)):
                mask[i] = 1
        sampled = [token for answer in taken for token in answer.token_ids]
        assert [token for token, m in zip(ids, mask, strict=True) if m] == sampled
        old = [p for answer in taken for p in answer.logprobs]
        expected.append((ids, mask, [i.digest for i in last.images], old, advantage))
    places, given = iter(loss.old), iter(loss.advantages)
    found: list[Any] = []
    for ids, mask, pictures in loss.rows:
        old = [next(places) for _ in range(sum(mask))]
        (advantage,) = {next(given) for _ in range(sum(mask))}
        found.append((ids, mask, pictures, pytest.approx(old), pytest.approx(advantage)))
    assert len(found) == len(expected)
    for item in expected:
        assert item in found
    assert next(places, None) is None


def moves(state: str, action: Action) -> str:
    return f"{state}>{action.name}"[-40:]


def make_job(spec: EpisodeSpec, seed: int = 1) -> Job:
    return job(task=TaskRef(template="fake", seed=1), spec=spec, seed=seed)


@pytest.mark.parametrize("family", tiny_checkpoints.FAMILIES)
@pytest.mark.parametrize(
    ("prompt", "history", "images"),
    [
        # pictures in the prompts of the four steps: real ones (at most `history`) + imagined
        ("compact", 1, [1 + 2, 1, 1 + 1, 1]),
        ("compact", 2, [1 + 2, 2, 2 + 1, 2]),
        ("full", 3, [1 + 2, 2, 3 + 1, 3]),
    ],
)
async def test_an_episode_with_imagined_calls_and_a_truncated_history(
    family: tiny_checkpoints.Family,
    prompt: Any,
    history: int,
    images: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tiny_checkpoints.make(tmp_path, family)
    blobs = MemoryBlobs()
    world = FakeWorldModel(moves, blobs=blobs)
    policy = Recorder(Scripted(checkpoint.load(folder), blobs, SCRIPT))
    spec = EpisodeSpec(prompt=prompt, history=history, image_scale=0.1)
    episode = await play(make_job(spec), world=world, policy=policy)
    assert episode.ending == Ending.FINISH
    assert [len(step.imagined) for step in episode.steps] == [2, 0, 2, 0]
    assert [len(step.segment.images) for step in episode.steps] == images

    stored = Trajectory.model_validate_json(episode.model_dump_json())
    loss = Loss(monkeypatch)
    pictures = {
        ref.digest: await blobs.get(ref.digest)
        for step in stored.steps
        for ref in step.segment.images
    }
    metrics = train(folder, spec, [stored], pictures)
    steps = stretches(policy.answers)
    assert [len(taken) for taken in steps] == [3, 1, 3, 1]
    assert_reached_the_loss(loss, steps, [1.0] * 4)
    # an id, a picture or a position that differs anywhere would show here
    assert metrics["logprob_gap_max"] < 1e-4


@pytest.fixture
async def engine_of() -> AsyncIterator[Callable[[Path], Any]]:
    engines: list[BatchEngine] = []

    async def start(folder: Path) -> BatchEngine:
        engine = BatchEngine(checkpoint.load(folder), threads=1)
        engines.append(engine)
        await engine.start()
        return engine

    yield start
    for engine in engines:
        await engine.close()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
async def test_sampled_episodes_reach_the_loss_as_they_were_sampled(
    temperature: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine_of: Callable[[Path], Any],
) -> None:
    folder = tiny_checkpoints.make(tmp_path)
    blobs = MemoryBlobs()
    updates: Any = None  # weights are never updated here
    policy = Recorder(LocalPolicy(await engine_of(folder), blobs, updates))
    world = FakeWorldModel(moves, blobs=blobs)
    spec = EpisodeSpec(
        prompt="compact", image_scale=0.1, temperature=temperature, max_new_tokens=12
    )
    episodes = [
        await play(
            make_job(spec, seed).model_copy(update={"job_id": f"e{seed}", "policy_id": ""}),
            world=world,
            policy=policy,
        )
        for seed in range(2)
    ]
    assert policy.answers[0].token_ids != policy.answers[1].token_ids
    loss = Loss(monkeypatch)
    pictures = {
        ref.digest: await blobs.get(ref.digest)
        for episode in episodes
        for step in episode.steps
        for ref in step.segment.images
    }
    metrics = train(folder, spec, episodes, pictures)
    assert_reached_the_loss(loss, [[answer] for answer in policy.answers], [1.0, 0.0])
    assert metrics["logprob_gap_max"] < 1e-4


def test_the_comparison_would_see_a_shifted_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = Loss(monkeypatch)
    answer = Generation(
        (1, 2), (3, 4), (-0.5, -0.25), "", FinishReason.END, "run", 0, (), "p"
    )  # fmt: skip
    for mask, good in (([0, 0, 1, 1], True), ([0, 1, 1, 0], False)):
        loss.rows = [([1, 2, 3, 4], mask, [])]
        loss.old, loss.advantages = [-0.5, -0.25], [1.0, 1.0]
        if good:
            assert_reached_the_loss(loss, [[answer]], [1.0])
        else:
            with pytest.raises(AssertionError):
                assert_reached_the_loss(loss, [[answer]], [1.0])


def test_scoring_matches_the_librarys_own_forward(tmp_path: Path) -> None:
    """The truth that the episodes above are held against, against transformers itself."""
    loaded = checkpoint.load(tiny_checkpoints.make(tmp_path))
    made = segment([5, 6, 7], [8, 9])
    ids = torch.tensor([made.token_ids])
    with torch.no_grad():
        logits = loaded.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
    logits[:, [loaded.model.config.image_token_id, loaded.model.config.video_token_id]] = -torch.inf
    expected = logits.log_softmax(-1)
    found = score(loaded, made, [])
    assert found.tolist() == pytest.approx([expected[2, 8].item(), expected[3, 9].item()])
