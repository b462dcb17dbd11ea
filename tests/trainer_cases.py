"""Hand-built episodes for tests of the trainer.

`trajectory` fills in everything a test does not care about. `Bandit` is a policy, a world
model and a rollout worker in one: an episode is one answer of a few tokens to a goal and a
picture, sampled from a real tiny model by plain full forwards (no cache, no batch), and it
succeeds when its first token is a rewarded one.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from tests import tiny_checkpoints
from wmkit.blobs import MemoryBlobs
from wmkit.domain.episode import (
    Ending,
    EpisodeSpec,
    ImageRef,
    Imagined,
    Job,
    Result,
    ResultStatus,
    Segment,
    Step,
    Trajectory,
)
from wmkit.domain.generation import Picture, PolicyInfo, Text, Turn
from wmkit.domain.tasks import Judgement, Task, TaskRef, Verdict
from wmkit.domain.transition import Outcome
from wmkit.modeling import checkpoint
from wmkit.modeling.forward import forward_logprobs
from wmkit.modeling.weights import load_weights
from wmkit.ports import BlobStore
from wmkit.queue.memory import MemoryJobQueue
from wmkit.testing import FakeWorldModel

# Tiny tensors gain nothing from threads, and on a busy machine threads that wait for each
# other make a test forty times slower.
torch.set_num_threads(1)

APPS = {"settings": "Settings", "clock": "Clock", "notes": "Notes", "contacts": "Contacts"}


def job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "job_id": "run/train-1/0/0",
        "run_id": "run",
        "phase": "train-1",
        "task": TaskRef(template="settings_turn_on", seed=1),
        "group": 0,
        "member": 0,
        "seed": 1,
        "policy_id": "run",
        "spec": EpisodeSpec(prompt="compact"),
    }
    return Job(**(values | changes))


def segment(
    prompt: Sequence[int] = (1, 2, 3),
    answer: Sequence[int] = (4, 5),
    logprobs: Sequence[float] | None = None,
    *,
    version: int = 0,
    images: Sequence[ImageRef] = (),
    processor: str = "fake",
) -> Segment:
    """A segment of one stretch: `prompt`, then sampled `answer`."""
    before, after = len(prompt), len(answer)
    return Segment(
        token_ids=(*prompt, *answer),
        mask=(0,) * before + (1,) * after,
        logprobs=(0.0,) * before + tuple(logprobs or (-1.0,) * after),
        versions=(-1,) * before + (version,) * after,
        images=tuple(images),
        processor=processor,
    )


def step(index: int = 0, **changes: Any) -> Step:
    values: dict[str, Any] = {
        "index": index,
        "state_id": f"s{index}",
        "screen_id": f"s{index}",
        "screenshot": "",
        "thought": "",
        "text": "Action: wait()",
        "action": {"action": "wait"},
        "outcome": Outcome.CHANGED,
        "next_state_id": f"s{index + 1}",
        "segment": segment(),
    }
    return Step(**(values | changes))


def imagined(k: int = 1, **changes: Any) -> Imagined:
    values: dict[str, Any] = {
        "k": k,
        "text": "tap",
        "action": {"action": "tap", "point": [0.5, 0.5]},
        "outcome": Outcome.CHANGED,
        "state_id": f"i{k}",
        "answered": True,
    }
    return Imagined(**(values | changes))


def trajectory(
    of: Job | None = None,
    *,
    success: bool | None = True,
    steps: Sequence[Step] | None = None,
    **changes: Any,
) -> Trajectory:
    """`success` None is a verdict of unsure."""
    of = of or job()
    verdict = {True: Verdict.SUCCESS, False: Verdict.FAILURE, None: Verdict.UNSURE}[success]
    app = APPS.get(of.task.template.split("_")[0], "Other")
    values: dict[str, Any] = {
        "job": of,
        "task": Task(
            ref=of.task,
            goal="Do it",
            complexity=3,
            step_limit=20,
            apps=(app,),
            main_app=app,
            kind="toggle",
        ),
        "backend": "fake",
        "revision": "1",
        "screen": {"width_px": 1080, "height_px": 2400, "scale": 1.0},
        "steps": tuple(steps if steps is not None else [step()]),
        "final_state_id": "end",
        "final_screenshot": "",
        "ending": Ending.FINISH,
        "judgement": Judgement(verdict=verdict, reason="looked at it", judge="fake"),
        "payloads": {},
        "wall_s": 1.0,
    }
    return Trajectory(**(values | changes))


class Bandit:
    """`rewarded` decides which first tokens succeed. `fate` may end a job otherwise."""

    def __init__(
        self,
        folder: Path,
        *,
        rewarded: Callable[[int], bool] = lambda token: token % 2 == 1,
        fate: Callable[[Job], ResultStatus] = lambda _: ResultStatus.ACCEPTED,
        tokens: int = 2,
    ) -> None:
        self.folder = folder
        self.loaded = checkpoint.load(folder)
        self.rewarded = rewarded
        self.fate = fate
        self.tokens = tokens
        self.queue = MemoryJobQueue()
        self.blobs: BlobStore = MemoryBlobs()
        self.world = FakeWorldModel(lambda state, _: state, template="settings_turn_on")
        self.policy_id, self.version = "", -1
        self.logprobs = True
        self.published: list[tuple[str, int]] = []

    # wmkit.ports.Policy, as far as the trainer uses it
    async def info(self) -> PolicyInfo:
        digest = self.loaded.processor_digest
        return PolicyInfo(
            self.policy_id, self.version, "tiny", digest, "cpu", 0, 0, logprobs=self.logprobs
        )

    async def update_weights(
        self, policy_id: str, version: int, weights_digest: str, **_: Any
    ) -> int:
        load_weights(self.loaded.model, await self.blobs.get(weights_digest))
        self.policy_id, self.version = policy_id, version
        self.published.append((policy_id, version))
        return version

    async def generate(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    @asynccontextmanager
    async def working(self) -> Any:
        """A rollout worker for the length of the `with` block."""
        worker = asyncio.create_task(self._work())
        try:
            yield self
        finally:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker

    async def _work(self) -> None:
        while True:
            for delivery in await self.queue.take("bandit", 8, 200):
                played = delivery.job
                status = self.fate(played)
                blob = ""
                if status == ResultStatus.ACCEPTED:
                    episode = await self.play(played)
                    blob = await self.blobs.put(episode.model_dump_json().encode())
                result = Result(
                    job_id=played.job_id,
                    run_id=played.run_id,
                    phase=played.phase,
                    group=played.group,
                    member=played.member,
                    status=status,
                    trajectory=blob,
                    reason="" if blob else "fate",
                )
                await self.queue.finish(delivery, result)

    async def play(self, of: Job) -> Trajectory:
        assert of.policy_id == self.policy_id and of.min_version <= self.version
        picture = tiny_checkpoints.png(of.task.seed % 3)
        digest = await self.blobs.put(picture)
        pixels = self.loaded.images.encode(picture)
        goal = Text(f"Goal: {of.task.seed}\n")
        prompt = self.loaded.chat.encode([Turn("user", (goal, Picture(digest)))], [pixels.tokens])
        generator = torch.Generator().manual_seed(of.seed)
        ids: list[int] = []
        logprobs: list[float] = []
        for _ in range(self.tokens):
            scores = self.distribution([*prompt, *ids], [pixels])
            if of.spec.temperature == 0:
                token = int(scores.argmax())
            else:
                token = int(torch.multinomial(scores.exp(), 1, generator=generator))
            ids.append(token)
            logprobs.append(scores[token].item())
        made = segment(
            prompt,
            ids,
            logprobs,
            version=self.version,
            images=[ImageRef(digest=digest, grid_thw=pixels.grid_thw)],
            processor=self.loaded.processor_digest,
        )
        return trajectory(
            of,
            success=self.rewarded(ids[0]),
            steps=[step(segment=made, screenshot=digest)],
            final_screenshot=digest,
        )

    @torch.no_grad()
    def distribution(self, ids: Sequence[int], pixels: Sequence[Any]) -> torch.Tensor:
        """Log-probabilities [vocabulary] of the token after `ids`: score each in its place."""
        size = self.loaded.model.config.text_config.vocab_size
        model = self.loaded.model
        batch = self.loaded.pack([[*ids, 0]], [pixels])
        out = model.model(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            pixel_values=batch.pixel_values,
            image_grid_thw=batch.image_grid_thw,
            mm_token_type_ids=batch.mm_token_type_ids,
        )
        logits = model.lm_head(out.last_hidden_state[0, -2]).float()
        assert logits.shape == (size,)
        logits[[model.config.image_token_id, model.config.video_token_id]] = -torch.inf
        scores: torch.Tensor = logits.log_softmax(-1)
        return scores


def score(loaded: checkpoint.Loaded, made: Segment, pixels: Sequence[Any]) -> torch.Tensor:
    """Log-probabilities of a segment's sampled tokens by one full forward."""
    batch = loaded.pack([made.token_ids], [pixels])
    with torch.no_grad():
        return forward_logprobs(loaded.model, batch, torch.tensor([made.mask]).bool())
