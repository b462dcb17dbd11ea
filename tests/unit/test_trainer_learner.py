"""The update on a real tiny model: against a direct loop, and against planted faults."""

import dataclasses
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from services.trainer import losses
from services.trainer.batches import Sample
from services.trainer.gather import Episode
from services.trainer.groups import harvest
from services.trainer.learner import BadSample, Learner, Stopped
from services.trainer.losses import TokenLosses
from services.trainer.recipe import Reward
from tests import tiny_checkpoints
from tests.learner_cases import IMAGES, gradient, make_samples, recipe, relative
from tests.trainer_cases import job, score, segment, step, trajectory
from wmkit.domain.episode import Result, ResultStatus
from wmkit.modeling import checkpoint
from wmkit.modeling.forward import forward_logprobs


@pytest.fixture(scope="module", params=tiny_checkpoints.FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"), request.param)


def by_loops(loaded: checkpoint.Loaded, samples: Sequence[Sample], kind: str) -> torch.Tensor:
    """The loss as the papers write it, one sample at a time through the library's forward."""
    model = loaded.model
    per_episode: dict[str, list[torch.Tensor]] = {}
    for sample in samples:
        pixels = [loaded.images.encode(IMAGES[ref.digest]) for ref in sample.images]
        ids = torch.tensor([sample.token_ids])
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if pixels:
            inputs["pixel_values"] = torch.cat([p.pixel_values for p in pixels])
            inputs["image_grid_thw"] = torch.tensor([p.grid_thw for p in pixels])
            inputs["mm_token_type_ids"] = (ids == loaded.chat.image_id).int()
        logits = model(**inputs, use_cache=False).logits[0].float()
        for banned in (model.config.image_token_id, model.config.video_token_id):
            logits[:, banned] = -torch.inf
        for i, (token, sampled, old) in enumerate(
            zip(sample.token_ids, sample.mask, sample.logprobs, strict=True)
        ):
            if sampled:
                logprob = logits[i - 1].log_softmax(-1)[token]
                ratio = torch.exp(logprob - old)
                gain = min(
                    ratio * sample.advantage,
                    ratio.clamp(0.8, 1.28) * sample.advantage,
                )
                if sample.advantage < 0:
                    gain = max(gain, torch.tensor(3.0 * sample.advantage))
                per_episode.setdefault(sample.episode, []).append(-gain)
    everything = [loss for episode in per_episode.values() for loss in episode]
    match kind:
        case "grpo":
            means = [torch.stack(losses).mean() for losses in per_episode.values()]
            return torch.stack(means).mean()
        case "dr_grpo":
            return torch.stack(everything).sum() / (len(per_episode) * 512)
        case _:
            return torch.stack(everything).mean()


@pytest.mark.parametrize("kind", ["grpo", "dapo", "bnpo", "dr_grpo"])
def test_gradient_equals_a_direct_loop_however_it_is_split(folder: Path, kind: str) -> None:
    """A drift of 0.6 nats makes every bound of the loss active somewhere."""
    learner = Learner(recipe(folder, loss={"aggregation": kind}))
    samples = make_samples(learner.loaded, drift=0.6)
    learner.model.zero_grad()
    by_loops(learner.loaded, samples, kind).backward()  # type: ignore[no-untyped-call]
    direct = torch.cat([p.grad.flatten() for p in learner.model.parameters() if p.grad is not None])
    whole = gradient(learner, samples, budget=10**9)
    assert relative(whole, direct) < 1e-5
    for budget in (1, 150):
        assert relative(gradient(learner, samples, budget), whole) < 1e-5


def test_on_policy_metrics(folder: Path) -> None:
    learner = Learner(recipe(folder))
    samples = make_samples(learner.loaded)
    metrics = learner.update(samples, IMAGES)
    assert metrics["logprob_gap"] < 1e-5
    assert metrics["logprob_gap_max"] < 1e-4
    assert metrics["ratio"] == pytest.approx(1, abs=1e-5)
    assert metrics["clip_low"] == metrics["clip_high"] == metrics["dual_clip"] == 0
    sampled = [p for s in samples for p, m in zip(s.logprobs, s.mask, strict=True) if m]
    assert metrics["entropy"] == pytest.approx(-sum(sampled) / len(sampled))
    # on policy each token's loss is -A, so the token mean is known without a model
    expected = -sum(s.advantage * s.sampled for s in samples) / len(sampled)
    assert metrics["loss"] == pytest.approx(expected, abs=1e-5)


def test_the_gap_sees_a_trainer_that_is_not_the_sampler(folder: Path) -> None:
    learner = Learner(recipe(folder))
    samples = make_samples(learner.loaded)
    shifted = [
        dataclasses.replace(
            s, logprobs=tuple(p - 0.05 * m for p, m in zip(s.logprobs, s.mask, strict=True))
        )
        for s in samples
    ]
    metrics = learner.update(shifted, IMAGES)
    assert metrics["logprob_gap"] == pytest.approx(0.05, abs=1e-4)


def plant_sign_flip(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = losses.policy_losses

    def flipped(*args: Any) -> TokenLosses:
        token = honest(*args)
        return dataclasses.replace(token, loss=-token.loss)

    monkeypatch.setattr(losses, "policy_losses", flipped)


def plant_shifted_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Learner.pack

    def shifted(self: Learner, samples: Sequence[Sample], images: Any) -> Any:
        batch, select = honest(self, samples, images)
        return batch, select.roll(-1, dims=1)

    monkeypatch.setattr(Learner, "pack", shifted)


def plant_wrong_broadcast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advantages laid out token by token over the samples instead of sample by sample."""
    honest = losses.policy_losses

    def mixed(logprobs: Any, old: Any, advantages: Any, *rest: Any) -> TokenLosses:
        return honest(logprobs, old, advantages.sort().values, *rest)

    monkeypatch.setattr(losses, "policy_losses", mixed)


@pytest.mark.parametrize("plant", [plant_sign_flip, plant_shifted_mask, plant_wrong_broadcast])
def test_the_comparison_with_the_loop_catches_planted_faults(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path)))
    samples = make_samples(learner.loaded)
    learner.model.zero_grad()
    by_loops(learner.loaded, samples, "dapo").backward()  # type: ignore[no-untyped-call]
    direct = torch.cat([p.grad.flatten() for p in learner.model.parameters() if p.grad is not None])
    assert relative(gradient(learner, samples, 10**9), direct) < 1e-5
    plant(monkeypatch)
    assert relative(gradient(learner, samples, 10**9), direct) > 0.1


def test_kl_pulls_back_to_the_base_weights_and_starts_at_zero(tmp_path: Path) -> None:
    folder = tiny_checkpoints.make(tmp_path)
    plain = Learner(recipe(folder, optimizer={"lr": 1e-3, "epochs": 2, "warmup": 0}))
    held = Learner(
        recipe(
            folder,
            optimizer={"lr": 1e-3, "epochs": 2, "warmup": 0},
            loss={"kl_beta": 5.0},
        )
    )
    base = {name: p.detach().clone() for name, p in plain.model.named_parameters()}
    samples = make_samples(plain.loaded)
    assert plain.update(samples, IMAGES)["kl"] == 0
    assert held.update(samples, IMAGES)["kl"] > 0

    def moved(learner: Learner) -> float:
        """How far the log-probabilities of the samples' tokens have gone."""
        total = 0.0
        for sample in samples:
            batch, select = learner.pack([sample], IMAGES)
            with torch.no_grad():
                now = forward_logprobs(learner.model, batch, select)
            old = [p for p, m in zip(sample.logprobs, sample.mask, strict=True) if m]
            total += float((now - torch.tensor(old)).square().sum())
        return total

    assert moved(held) < moved(plain)
    assert any(not torch.equal(p, base[name]) for name, p in held.model.named_parameters())


def test_warm_up_and_several_steps(tmp_path: Path) -> None:
    learner = Learner(
        recipe(
            tiny_checkpoints.make(tmp_path),
            optimizer={"lr": 1e-3, "warmup": 4, "epochs": 2, "minibatches": 2},
        )
    )
    samples = make_samples(learner.loaded)
    metrics = learner.update(samples, IMAGES)
    assert metrics["optimizer_steps"] == 4
    assert metrics["lr"] == pytest.approx(1e-3)
    assert learner.update(samples, IMAGES)["lr"] == pytest.approx(1e-3)


def test_first_steps_of_the_warm_up_are_small(tmp_path: Path) -> None:
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path), optimizer={"lr": 1e-3, "warmup": 4}))
    samples = make_samples(learner.loaded)
    rates = [learner.update(samples, IMAGES)["lr"] for _ in range(5)]
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3])


def broken(samples: list[Sample], **changes: Any) -> list[Sample]:
    return [*samples[:-1], dataclasses.replace(samples[-1], **changes)]


def test_samples_that_cannot_be_trained_on_are_named(tmp_path: Path) -> None:
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path)))
    samples = make_samples(learner.loaded)
    last = samples[-1]
    name = "episode-2 step 1"
    before = [p.detach().clone() for p in learner.model.parameters()]
    nan = tuple(math.nan if m else p for p, m in zip(last.logprobs, last.mask, strict=True))
    wrong_grid = tuple(r.model_copy(update={"grid_thw": (1, 2, 2)}) for r in last.images)
    for changes, words in (
        ({"logprobs": nan}, "not finite"),
        ({"advantage": math.inf}, "not finite"),
        ({"processor": "another"}, "another"),
        ({"images": wrong_grid}, "patches"),
        ({"images": last.images[:1]}, "placeholders"),
        ({"mask": (1, *last.mask[1:])}, "begins with a sampled token"),
    ):
        with pytest.raises(BadSample, match=words) as caught:
            learner.update(broken(samples, **changes), IMAGES)
        assert name in caught.value.message
    for p, old in zip(learner.model.parameters(), before, strict=True):
        assert torch.equal(p, old)


def test_a_gradient_that_is_not_finite_names_its_trajectory(tmp_path: Path) -> None:
    """A huge advantage whose loss is still finite, but whose gradient overflows."""
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path)))
    samples = broken(make_samples(learner.loaded), advantage=3e38)
    with pytest.raises(BadSample, match=r"gradient is not finite.*episode-2 step 1"):
        learner.update(samples, IMAGES)


def test_an_update_can_be_stopped_from_outside(tmp_path: Path) -> None:
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path)))
    samples = make_samples(learner.loaded)
    threading.Thread(target=learner.stop.set).start()
    while not learner.stop.is_set():
        pass
    with pytest.raises(Stopped):
        learner.update(samples, IMAGES)


def test_more_probable_after_a_reward_less_after_a_penalty(tmp_path: Path) -> None:
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path), optimizer={"lr": 1e-3}))
    samples = make_samples(learner.loaded)
    for _ in range(3):
        learner.update(samples, IMAGES)
    learner.model.eval()
    for sample in samples:
        pixels = [learner.loaded.images.encode(IMAGES[r.digest]) for r in sample.images]
        made = segment(sample.token_ids, [0]).model_copy(
            update={
                "token_ids": sample.token_ids,
                "mask": sample.mask,
                "logprobs": sample.logprobs,
                "versions": sample.mask,
            }
        )
        now = float(score(learner.loaded, made, pixels).sum())
        assert (now - sum(sample.logprobs)) * sample.advantage > 0


@pytest.mark.parametrize(
    "loss",
    [
        {"objective": "gspo", "clip_low": 0.1, "clip_high": 0.1},
        {"objective": "cispo", "cispo_cap": 1.3},
        {"correction": "token_truncate", "correction_cap": 1.3},
        {"correction": "sequence_mask", "kl_beta": 0.1},
    ],
    ids=lambda loss: "-".join(map(str, loss.values())),
)
def test_no_objective_or_correction_depends_on_the_split(
    tmp_path: Path, loss: dict[str, Any]
) -> None:
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path), loss=loss))
    samples = make_samples(learner.loaded, drift=0.6)
    whole = gradient(learner, samples, budget=10**9)
    assert float(whole.norm()) > 1e-3
    for budget in (1, 150):
        assert relative(gradient(learner, samples, budget), whole) < 1e-5
    backwards = list(reversed(samples))
    assert relative(gradient(learner, backwards, budget=150), whole) < 1e-5


def test_a_correction_looks_at_the_weights_before_the_first_step(tmp_path: Path) -> None:
    """Two steps over the same samples: the weight stays the first step's, the ratio moves."""
    learner = Learner(
        recipe(
            tiny_checkpoints.make(tmp_path),
            loss={"correction": "token_truncate", "correction_cap": 100.0},
            optimizer={"lr": 1e-2, "epochs": 2, "warmup": 0},
        )
    )
    samples = make_samples(learner.loaded)
    shifted = [
        dataclasses.replace(
            s, logprobs=tuple(p - 0.5 * m for p, m in zip(s.logprobs, s.mask, strict=True))
        )
        for s in samples
    ]
    metrics = learner.update(shifted, IMAGES)
    assert metrics["correction"] == pytest.approx(math.exp(0.5), rel=1e-4)
    assert metrics["correction_masked"] == 0
    assert metrics["ratio"] != pytest.approx(1, abs=1e-3)


def test_an_all_failed_group_has_no_gradient_when_gated_and_one_under_paper(
    tmp_path: Path,
) -> None:
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path)))
    segments = make_samples(learner.loaded)
    episodes = []
    for member, parts in enumerate((segments[:1], segments[1:3])):
        of = job(job_id=f"run/train-1/0/{member}", member=member)
        steps = [
            step(
                i,
                segment=segment(processor=part.processor, images=part.images).model_copy(
                    update={
                        "token_ids": part.token_ids,
                        "mask": part.mask,
                        "logprobs": part.logprobs,
                        "versions": tuple(0 if m else -1 for m in part.mask),
                    }
                ),
            )
            for i, part in enumerate(parts)
        ]
        named = of.model_dump(include={"job_id", "run_id", "phase", "group", "member"})
        result = Result(**named, status=ResultStatus.ACCEPTED)
        episodes.append(Episode(of, result, trajectory(of, success=False, steps=steps)))
    for shaping in ("gated", "paper"):
        ruled = learner.recipe.model_copy(update={"reward": Reward(shaping=shaping, gamma=0.0)})
        found = harvest(episodes, ruled, 0, seed=0)
        if shaping == "gated":
            assert found.samples == []
            assert found.metrics["groups_dropped_spread"] == 1
        else:
            assert float(gradient(learner, found.samples, 10**9).norm()) > 1e-3
    still = [dataclasses.replace(s, advantage=0.0) for s in segments]
    assert float(gradient(learner, still, 10**9).abs().max()) == 0.0


def test_a_sample_that_is_longer_than_the_context_is_named(tmp_path: Path) -> None:
    longest = len(
        make_samples(checkpoint.load(tiny_checkpoints.make(tmp_path / "wide")))[-1].token_ids
    )
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path / "tight", context=longest - 1)))
    samples = make_samples(learner.loaded)
    with pytest.raises(BadSample, match=r"episode-2 step 1 has \d+ tokens, the model takes \d+"):
        learner.update(samples, IMAGES)
