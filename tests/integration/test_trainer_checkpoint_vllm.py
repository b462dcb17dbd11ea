"""A run's `checkpoint/` in vLLM: what people do with it who serve it elsewhere.

Run by `make test-vllm`. An engine takes a minute to start, so there is one for each way to train.
"""

from pathlib import Path
from typing import Any

import pytest

from services.policy.decoding import generate
from services.policy.engine import Prompt
from services.policy.features import FeatureCache
from services.policy.vllm_engine import VllmEngine
from services.policy.vllm_llm import Options
from services.trainer.learner import ADAPTER, Learner
from services.trainer.recipe import Recipe
from services.trainer.rundir import RunDir
from tests import tiny_checkpoints
from tests.learner_cases import IMAGES, make_samples
from wmkit.domain.generation import Picture, Sampling, Text, Turn
from wmkit.modeling import Loaded, load, load_processor

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def prompts(model: Loaded) -> list[Prompt]:
    """Greedy ones, with none to two pictures."""
    out = []
    for number in range(3):
        shown = [model.images.encode(tiny_checkpoints.png(i)) for i in range(number)]
        parts = (Text("tap " * (number + 1)), *(Picture(image.digest) for image in shown))
        ids = model.chat.encode([Turn("user", parts)], [image.tokens for image in shown])
        out.append(Prompt(ids, shown, Sampling(0.0, 16)))
    return out


def answers(model: Loaded) -> list[tuple[int, ...]]:
    """By the engine `transformers`."""
    return [tuple(generate(model, [one], FeatureCache(0))[0].token_ids) for one in prompts(model)]


@pytest.mark.parametrize("lora", [{}, {"rank": 4, "alpha": 8}], ids=["weights", "lora"])
async def test_a_saved_checkpoint_answers_in_vllm_as_in_transformers(
    tmp_path: Path, lora: dict[str, Any]
) -> None:
    base = tiny_checkpoints.make(tmp_path / "base", head_dim=32)
    recipe = {
        "checkpoint": str(base),
        "tasks": {"templates": ["settings_turn_on"]},
        "optimizer": {"lr": 3e-2, "warmup": 0},
        "lora": lora,
    }
    learner = Learner(Recipe.model_validate(recipe))
    samples = make_samples(learner.loaded)
    for _ in range(5):
        learner.update(samples, IMAGES)
    run = RunDir(tmp_path / "run")
    run.create("")
    run.save_checkpoint(learner.save)
    assert (run.checkpoint / ADAPTER).is_dir() == bool(lora)

    trained = load(run.checkpoint)
    expected = answers(trained)
    # Else an engine that serves the weights from before could not be told from this one.
    assert all(a != b for a, b in zip(expected, answers(load(base)), strict=True))
    engine = VllmEngine(load_processor(run.checkpoint), Options(eager=True, max_batch=4))
    await engine.start()
    try:
        found = [(await engine.generate(one))[0].token_ids for one in prompts(trained)]
    finally:
        await engine.close()
    assert [tuple(ids) for ids in found] == expected
