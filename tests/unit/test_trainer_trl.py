"""Loss and gradient against TRL's `GRPOTrainer._compute_loss`: same model, same tokens, same
log-probabilities of sampling, one unsplit batch.

TRL reads its configuration itself (`GRPOConfig`) and runs the model itself, so what is
compared is everything between weights and gradient. Skipped where TRL is not installed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", minversion="1.16")

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from services.trainer import losses
from services.trainer.batches import Sample
from services.trainer.learner import Learner
from services.trainer.recipe import Recipe
from services.trainer.tally import Tally
from tests import tiny_checkpoints
from wmkit.modeling import forward

pytestmark = pytest.mark.slow

COMPLETION = 12
"""TRL's max_completion_length, by which `dr_grpo` divides."""
# (prompt, completion, completion mask): one answer with environment tokens in the middle.
ANSWERS = (
    ([5, 6, 7], [8, 9, 10, 11, 12], [1, 1, 1, 1, 1]),
    ([5, 9], [20, 21, 22, 23, 24, 25, 26], [1, 1, 0, 0, 1, 1, 1]),
    ([7, 8, 9, 10], [30, 31], [1, 1]),
    ([11], [8, 40, 41, 42], [1, 1, 1, 1]),
)
ADVANTAGES = (1.5, -0.5, 0.4, -1.4)
TRL = {
    "clip": {},
    "gspo": {"importance_sampling_level": "sequence"},
    "cispo": {"loss_type": "cispo", "epsilon_high": 2.0},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"))


def learner(folder: Path, **loss: Any) -> Learner:
    values = {
        "checkpoint": str(folder),
        "tasks": {"templates": ["a"]},
        "loss": {"constant_tokens": COMPLETION, "cispo_cap": 2.0, **loss},
    }
    made = Learner(Recipe.model_validate(values))
    if made._reference is not None:
        shift(made._reference.model)
    return made


def shift(model: Any) -> None:
    """A reference that is another policy, so that the KL term is not zero."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.02 * torch.randn(p.shape, generator=generator))


def samples(made: Learner, drift: float) -> list[Sample]:
    """Sampled `drift` nats away from the model, in a fixed wiggle, so that bounds are active."""
    out = []
    for number, ((prompt, answer, mask), advantage) in enumerate(
        zip(ANSWERS, ADVANTAGES, strict=True)
    ):
        blank = Sample(
            f"s{number}",
            f"e{number}",
            (*prompt, *answer),
            (*[0] * len(prompt), *mask),
            (0.0,) * (len(prompt) + len(answer)),
            (),
            made.processor,
            advantage,
        )
        scores = iter(made._score([blank], {})[blank.name].tolist())
        old = [
            next(scores) + drift * float(torch.tensor(2.0 * i + number).sin()) if m else 0.0
            for i, m in enumerate(blank.mask)
        ]
        out.append(Sample(**{**{f: getattr(blank, f) for f in FIELDS}, "logprobs": tuple(old)}))
    return out


FIELDS = ("name", "episode", "token_ids", "mask", "logprobs", "images", "processor", "advantage")


def padded(rows: Sequence[Sequence[float]], left: bool = False) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor(
        [
            [0] * (width - len(r)) + list(r) if left else list(r) + [0] * (width - len(r))
            for r in rows
        ]
    )


def ours(made: Learner, of: Sequence[Sample]) -> tuple[float, torch.Tensor]:
    weights = losses.token_weights(
        made.recipe.loss.aggregation,
        [s.sampled for s in of],
        [s.episode for s in of],
        step_share=1.0,
        iteration_tokens=sum(s.sampled for s in of),
        constant_tokens=COMPLETION,
    )
    made.model.zero_grad()
    loss = made.loss(of, weights, {}, Tally(), True)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), flat(made.model)


def flat(model: Any) -> torch.Tensor:
    return torch.cat([p.grad.flatten().clone() for p in model.parameters() if p.grad is not None])


def theirs(made: Learner, of: Sequence[Sample], tmp_path: Path) -> tuple[float, torch.Tensor]:
    recipe = made.recipe.loss
    settings: dict[str, Any] = {
        "loss_type": recipe.aggregation,
        "epsilon": recipe.clip_low,
        "epsilon_high": recipe.clip_high,
        "delta": recipe.dual_clip,
        **TRL[recipe.objective],
    }
    config = GRPOConfig(
        output_dir=str(tmp_path),
        use_cpu=True,
        bf16=False,
        report_to=[],
        per_device_train_batch_size=len(of),
        num_generations=len(of),
        max_completion_length=COMPLETION,
        gradient_checkpointing=False,
        use_bias_correction_kl=False,
        **settings,
    )
    trainer = GRPOTrainer(
        model=made.model,
        reward_funcs=lambda **_: [0.0],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["a"]}),
        processing_class=made.loaded.tokenizer,
    )
    # Set after the fact: with it, TRL would load another copy of the weights by their name.
    trainer.beta = recipe.kl_beta
    # Given by the surrounding training loop.
    trainer.current_gradient_accumulation_steps = 1
    made.model.train()
    prompts, answers, masks = zip(*ANSWERS, strict=True)
    old = padded([s.logprobs[len(p) :] for s, p in zip(of, prompts, strict=True)])
    inputs: dict[str, Any] = {
        "prompt_ids": padded(prompts, left=True),
        "prompt_mask": padded([[1] * len(p) for p in prompts], left=True),
        "completion_ids": padded(answers),
        "completion_mask": padded([[1] * len(a) for a in answers]),
        "tool_mask": padded(masks),
        "advantages": torch.tensor([s.advantage for s in of]),
        "num_items_in_batch": torch.tensor(sum(s.sampled for s in of)),
        "old_per_token_logps": old,
    }
    whole = inputs["completion_mask"] * inputs["tool_mask"]

    def scores() -> torch.Tensor:
        with torch.no_grad():
            ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
            attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
            found: torch.Tensor = trainer._get_per_token_logps_and_entropies(
                made.model, ids, attention, inputs["completion_ids"].shape[1]
            )[0]
            return found

    if recipe.kl_beta:
        # TRL has prepared this model object only, so the reference's weights visit it.
        mine = {name: t.clone() for name, t in made.model.state_dict().items()}
        assert made._reference is not None
        made.model.load_state_dict(made._reference.model.state_dict())
        inputs["ref_per_token_logps"] = scores()
        made.model.load_state_dict(mine)
    if recipe.correction != "none":
        # As `_generate_and_score_completions` makes it from vLLM's log-probabilities.
        trainer.use_vllm, trainer.vllm_importance_sampling_correction = True, True
        start = scores()
        inputs["old_per_token_logps"] = start
        gap = (start - old) * whole
        if recipe.correction.startswith("sequence"):
            gap = gap.sum(-1, keepdim=True)
        ratio = torch.exp(gap)
        if recipe.correction.endswith("truncate"):
            ratio = torch.clamp(ratio, min=recipe.correction_floor, max=recipe.correction_cap)
        else:
            ratio = ratio.masked_fill(ratio > recipe.correction_cap, 0.0)
        inputs["importance_sampling_ratio"] = ratio
    made.model.zero_grad()
    loss = trainer._compute_loss(made.model, inputs)
    loss.backward()
    return loss.item(), flat(made.model)


CASES = [
    {"aggregation": aggregation, "kl_beta": kl, "correction": correction}
    for aggregation in ("grpo", "bnpo", "dapo", "dr_grpo")
    for kl in (0.0, 0.1)
    for correction in ("none", "token_truncate", "sequence_mask")
]
OTHERS: list[dict[str, Any]] = [
    {"objective": "gspo", "aggregation": "grpo", "clip_low": 0.02, "clip_high": 0.03},
    {"objective": "gspo", "aggregation": "grpo", "kl_beta": 0.1},
    {"objective": "cispo", "aggregation": "dapo"},
    {"objective": "cispo", "aggregation": "dapo", "kl_beta": 0.1, "correction": "token_mask"},
    {"aggregation": "dapo", "correction": "sequence_truncate"},
]


@pytest.mark.parametrize("case", CASES + OTHERS, ids=lambda case: "-".join(map(str, case.values())))
def test_loss_and_gradient_agree_with_trl(
    folder: Path, tmp_path: Path, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # We rule the image placeholders out of the distribution (docs/training.md), TRL does not.
    monkeypatch.setattr(forward, "logits", lambda model, hidden: model.lm_head(hidden).float())
    made = learner(folder, **{"correction_cap": 1.5, **case})
    of = samples(made, drift=0.9)
    value, gradient = ours(made, of)
    their_value, their_gradient = theirs(made, of, tmp_path)
    assert float(gradient.norm()) > 1e-3
    assert value == pytest.approx(their_value, rel=1e-5, abs=1e-7)
    assert float((gradient - their_gradient).norm() / their_gradient.norm()) < 1e-5
