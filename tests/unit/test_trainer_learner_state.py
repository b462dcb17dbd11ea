"""A learner on disk: the checkpoint for everybody, and the state that it goes on from."""

from pathlib import Path

import pytest
import torch

from services.trainer.learner import Learner
from services.trainer.learner_state import load_learner, save_learner
from services.trainer.tally import Tally
from tests import tiny_checkpoints
from tests.learner_cases import IMAGES, make_samples, recipe
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling import checkpoint


@pytest.mark.parametrize("family", tiny_checkpoints.FAMILIES)
def test_a_saved_checkpoint_scores_as_the_trained_model_and_keeps_the_processor(
    family: tiny_checkpoints.Family, tmp_path: Path
) -> None:
    folder = tiny_checkpoints.make(tmp_path / "tiny", family)
    learner = Learner(recipe(folder, optimizer={"lr": 1e-2}))
    samples = make_samples(learner.loaded)
    learner.update(samples, IMAGES)
    learner.save(tmp_path / "out")
    again = checkpoint.load(tmp_path / "out")
    assert again.processor_digest == learner.processor
    learner.loss(samples, [1.0] * len(samples), IMAGES, Tally(), True)
    mine, theirs = Tally(), Tally()
    learner.loss(samples, [1.0] * len(samples), IMAGES, mine, True)
    learner.scorer.model = again.model
    learner.loss(samples, [1.0] * len(samples), IMAGES, theirs, True)
    assert mine.gap > 1e-3
    assert theirs.gap == pytest.approx(mine.gap, rel=1e-5)


def test_a_learner_goes_on_from_its_saved_state_bit_for_bit(tmp_path: Path) -> None:
    chosen = recipe(
        tiny_checkpoints.make(tmp_path / "tiny"),
        optimizer={"lr": 1e-3, "epochs": 2, "minibatches": 2, "schedule": "cosine"},
        schedule={"iterations": 6},
    )
    whole, first = Learner(chosen), Learner(chosen)
    samples = make_samples(whole.loaded)
    for _ in range(3):
        assert first.update(samples, IMAGES)["loss"] == whole.update(samples, IMAGES)["loss"]
    save_learner(first, tmp_path)
    later = Learner(chosen)
    torch.rand(5)  # the state must bring its own generator
    load_learner(later, tmp_path)
    for _ in range(3):
        later.update(samples, IMAGES)
        whole.update(samples, IMAGES)
    for (name, ours), theirs in zip(
        later.model.state_dict().items(), whole.model.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name
    next(tmp_path.glob("*.safetensors")).write_bytes(b"junk")
    with pytest.raises(BadCheckpoint, match="saved state"):
        load_learner(later, tmp_path)
