"""A training run as one TOML file: every setting, its default and its limits.

Reading and writing the file is `services.trainer.recipe_toml`; nothing here touches a disk.
"""

import re
from itertools import combinations
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from wmkit.domain.episode import EpisodeSpec, Priority

Control = Literal["none", "shuffle_rewards"]
Aggregation = Literal["grpo", "dapo", "bnpo", "dr_grpo"]
Objective = Literal["clip", "cispo", "gspo", "likelihood"]
Correction = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
TrackerName = Literal["auto", "none", "trackio", "tensorboard", "wandb"]
Positive = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


class Tasks(Section):
    """Which task instances are trained on and which are held out."""

    templates: tuple[str, ...] = Field(min_length=1)
    """Names of task templates; `wmr1 tasks list` lists them."""
    train_seeds: tuple[int, int] = (0, 1_000_000)
    """Half-open range [from, to) of the seeds that are trained on."""
    eval_seeds: tuple[int, int] = (3_000_000, 4_000_000)
    """Half-open range of held-out seeds; must not overlap the training range (nor what the
    starting checkpoint has seen, which is for the recipe's author to know)."""
    eval_n: int = Field(256, ge=1)
    """Held-out instances, spread evenly over the templates, the same before and after."""

    validation_seeds: tuple[int, int] = (2_000_000, 3_000_000)
    """Half-open range of the seeds by which the best weights are chosen; overlaps neither of
    the others."""
    validation_n: int = Field(0, ge=0)
    """Instances of a validation, spread evenly over the templates, always the same; 0: none."""

    @field_validator("templates")
    @classmethod
    def _no_template_twice(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in templates if templates.count(name) > 1})
        if twice:
            raise ValueError(f"names {twice[0]!r} twice")
        return templates

    @field_validator("train_seeds", "eval_seeds", "validation_seeds")
    @classmethod
    def _a_range(cls, seeds: tuple[int, int]) -> tuple[int, int]:
        if not 0 <= seeds[0] < seeds[1]:
            raise ValueError(f"must be [from, to) with 0 <= from < to, is {list(seeds)}")
        return seeds

    @model_validator(mode="after")
    def _held_out(self) -> Self:
        names = ("train", "eval", "validation") if self.validation_n else ("train", "eval")
        ranges = [(name, *getattr(self, f"{name}_seeds")) for name in names]
        for (one, a, b), (other, c, d) in combinations(ranges, 2):
            if a < d and c < b:
                raise ValueError(
                    f"{one}_seeds [{a}, {b}) and {other}_seeds [{c}, {d}) overlap, "
                    "so one would not be held out from the other"
                )
        for name, start, stop in ranges[1:]:
            wanted = getattr(self, f"{name}_n")
            if -(-wanted // len(self.templates)) > stop - start:
                raise ValueError(f"{name}_seeds has too few seeds for {name}_n = {wanted}")
        return self


class Schedule(Section):
    """How long the run trains and on how many episodes an update stands."""

    iterations: int = Field(1000, ge=0)
    """At most this many updates; 0 evaluates once and trains nothing."""
    max_train_s: float = Field(0, ge=0)
    """Start no iteration after this many seconds of training; 0 sets no limit."""
    groups: int = Field(8, ge=1)
    """Tasks per iteration."""
    group_size: int = Field(8, ge=2)
    """Episodes per task: N of the group."""
    dynamic_sampling: bool = False
    """Play further tasks in place of groups that teach nothing, within the same iteration."""
    max_refills: int = Field(3, ge=1)
    """With `dynamic_sampling`: at most this many further rounds in an iteration."""
    save_every: int = Field(1, ge=1)
    """Iterations between two saved states that the run can be resumed from."""
    keep_states: int = Field(1, ge=1)
    """How many of the newest states stay on disk."""
    max_staleness: int = Field(0, ge=0)
    """Play the next iterations' episodes while training, up to this many updates behind; 0 is
    strictly on-policy."""
    validate_every: int = Field(10, ge=1)
    """Iterations between two validations (greedy, where `tasks.validation_n` asks for them); the
    best weights so far stay in `best/`."""
    priority: Priority = "normal"
    """Of the run's episodes on workers that several runs share: `high` ones are played first."""
    member_wait_s: float = Field(120.0, ge=0)
    """How long a group waits for a member that infrastructure lost to be played again, before
    it goes on with the others (two at least); 0 waits for as long as that takes."""
    stall_s: Positive = 180.0
    """Fail the run when no episode ends for this long (no worker is alive, for instance)."""


class Reward(Section):
    """R = alpha * success + beta * R_L + gamma * R_WM; see `wmkit.domain.rewards`."""

    shaping: Literal["paper", "gated"] = "gated"
    """`gated` gives failures 0; `paper` also grades the length of failures."""
    wm_term: Literal["none", "paper", "useful"] = "none"
    """Whether and how world-model calls enter the reward."""
    alpha: float = Field(1.0, ge=0)
    """Weight of success."""
    beta: float = Field(0.5, ge=0)
    """Weight of the length term R_L."""
    gamma: float = Field(0.1, ge=0)
    """Weight of the world-model term R_WM."""

    @model_validator(mode="after")
    def _one_term(self) -> Self:
        if self.shaping == "paper" and self.wm_term == "useful":
            raise ValueError(
                'shaping = "paper" has the paper\'s world-model term; "useful" goes with "gated"'
            )
        return self


class Advantage(Section):
    """From a group's rewards to its advantages; see `wmkit.domain.advantages`."""

    kind: Literal["grpo", "dr_grpo", "rloo", "gigpo"] = "grpo"
    """`grpo` divides by the group's standard deviation, `dr_grpo` does not; `rloo` compares
    with the other members; `gigpo` adds a step part to `grpo`'s."""
    step_weight: float = Field(1.0, ge=0)
    """Weight w of `gigpo`'s step part."""
    step_group: Literal["state", "screen"] = "state"
    """What makes steps of a group comparable for `gigpo`: the same state, or screens that
    look the same."""
    step_discount: float = Field(1.0, gt=0, le=1)
    """`gigpo`: factor on a step's return per step that is still to come."""


class Branching(Section):
    """Step-level groups: several continuations from one state of an iteration's episodes."""

    groups: int = Field(0, ge=0)
    """States per iteration from which branches are played; 0 plays none."""
    size: int = Field(4, ge=2)
    """Branches from each state."""
    horizon: int = Field(8, ge=1)
    """Steps of a branch at most: L_max of its reward."""
    weight: Positive = 1.0
    """Factor on the advantage that a branch gives to the step at its root."""


class Replay(Section):
    """Earlier successes for groups that have none; see `services.trainer.replay`."""

    per_task: int = Field(0, ge=0)
    """Successes remembered for each task instance; 0 turns the buffer off."""
    max_age: int = Field(8, ge=1)
    """Policy versions after which a success is too old."""


class Loss(Section):
    """The clipped policy-gradient loss; see `services.trainer.losses`."""

    objective: Objective = "clip"
    """`clip` bounds each token's ratio; `cispo` bounds its weight and never drops a token;
    `gspo` bounds the mean ratio of a whole answer (try clip_low = 3e-4, clip_high = 4e-4);
    `likelihood` is -A log p, which with A = 1 is supervised training (`wmr1 sft`)."""
    aggregation: Aggregation = "dapo"
    """How token losses are averaged: per episode (`grpo`), over tokens of the iteration
    (`dapo`) or of the optimizer step (`bnpo`), or by a constant (`dr_grpo`)."""
    clip_low: float = Field(0.2, gt=0, lt=1)
    """The ratio is clipped below at 1 - clip_low."""
    clip_high: Positive = 0.28
    """The ratio is clipped above at 1 + clip_high."""
    dual_clip: float = Field(3.0, gt=1)
    """Bound on the ratio where the advantage is negative."""
    cispo_cap: float = Field(5.0, gt=1)
    """Largest weight of a token under `cispo`."""
    correction: Correction = "none"
    """What to do where sampler and trainer disagree. `none`: the ratio to the sampler is part
    of the objective's ratio. Otherwise that ratio is to the trainer's own weights before the
    iteration, and the rest is a weight of its own: per token or per answer, truncated or, over
    the cap or under the floor, masked."""
    correction_cap: float = Field(2.0, gt=1)
    """Largest weight of the correction."""
    correction_floor: float = Field(0.0, ge=0, lt=1)
    """Smallest weight of the correction."""
    kl_beta: float = Field(0.0, ge=0)
    """Weight of the k3 divergence from the base weights; 0 keeps no reference model."""
    constant_tokens: int = Field(512, ge=1)
    """Tokens per episode by which `dr_grpo` divides."""
    gap_alarm: Positive = 0.01
    """Warn when mean |delta log p| between sampler and trainer exceeds this many nats."""


class Optimizer(Section):
    """AdamW."""

    lr: Positive = 1e-6
    """Learning rate after the warm-up."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of the two moments, each in [0, 1)."""
    weight_decay: float = Field(0.01, ge=0)
    """Applied to matrices only."""
    grad_clip: Positive = 1.0
    """Largest norm of the whole gradient."""
    warmup: int = Field(3, ge=0)
    """Optimizer steps over which the learning rate rises linearly."""
    schedule: Literal["constant", "cosine"] = "constant"
    """After the warm-up. `cosine` falls to `cosine_floor` over `schedule.iterations` iterations."""
    cosine_floor: float = Field(0.0, ge=0, le=1)
    """Where `cosine` ends, as a fraction of `lr`."""
    epochs: int = Field(1, ge=1)
    """Passes over an iteration's samples."""
    minibatches: int = Field(1, ge=1)
    """Optimizer steps per pass."""
    micro_batch_tokens: int = Field(16384, ge=1)
    """Padded tokens in one forward pass; decides memory, never the gradient."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """What is computed in. Weights, gradients and moments are kept in float32 either way."""
    gradient_checkpointing: bool = False
    """Compute each layer again in the backward pass instead of keeping what is inside it."""

    @field_validator("betas")
    @classmethod
    def _betas(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"must both lie in [0, 1), are {list(betas)}")
        return betas


class Lora(Section):
    """Train low-rank adapters of the language model instead of its weights (Hu et al. 2021)."""

    rank: int = Field(0, ge=0)
    """Rank of every adapter; 0 trains the weights themselves."""
    alpha: int = Field(32, ge=1)
    """An adapter counts alpha / rank times."""


class Recipe(Section):
    """One run. Unknown keys are refused."""

    name: str = "run"
    """Begins the run id: letters, digits, `-` and `_`."""
    seed: int = Field(0, ge=0)
    """Decides tasks, sampling seeds and the order of samples."""
    checkpoint: str
    """Folder of the starting weights (safetensors, tokenizer, image processor)."""
    control: Control = "none"
    """`shuffle_rewards` permutes rewards within each group: training must then not help."""
    tracker: TrackerName = "auto"
    """Where curves go besides metrics.jsonl; `auto` is trackio where it is installed."""
    tasks: Tasks
    schedule: Schedule = Schedule()
    episode: EpisodeSpec = EpisodeSpec()
    """How episodes are played; evaluation plays the same, greedily."""
    reward: Reward = Reward()
    advantage: Advantage = Advantage()
    branching: Branching = Branching()
    replay: Replay = Replay()
    loss: Loss = Loss()
    optimizer: Optimizer = Optimizer()
    lora: Lora = Lora()

    @field_validator("name")
    @classmethod
    def _usable_as_a_folder(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
            raise ValueError("may hold letters, digits, '-' and '_' only (at most 64)")
        return name

    @field_validator("episode")
    @classmethod
    def _explores(cls, episode: EpisodeSpec) -> EpisodeSpec:
        if episode.temperature == 0:
            raise ValueError(
                "needs a temperature above 0: greedy episodes of one task are all the same"
            )
        return episode

    @property
    def train_episode(self) -> EpisodeSpec:
        """The training episode. One that is played while weights are updated goes on under the
        new ones; every token says which it is from."""
        if not self.schedule.max_staleness:
            return self.episode
        return self.episode.model_copy(update={"mixed_versions": True})

    @property
    def eval_episode(self) -> EpisodeSpec:
        """The training episode, played greedily."""
        return self.episode.model_copy(update={"temperature": 0.0})
