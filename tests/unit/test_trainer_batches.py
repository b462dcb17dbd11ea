"""Samples are segments as they are; micro-batches hold each sample once."""

from hypothesis import given
from hypothesis import strategies as st

from services.trainer.batches import micro_batches, samples_of
from tests.trainer_cases import job, segment, step, trajectory
from wmkit.domain.episode import ImageRef


def test_a_sample_is_its_segment_token_by_token() -> None:
    picture = ImageRef(digest="d1", grid_thw=(1, 4, 6))
    first = segment([7, 8], [9], [-0.5])
    second = segment([7, 8, 9, 1], [2, 3], [-0.25, -2.0], images=[picture], processor="p")
    episode = trajectory(
        job(job_id="run/train-1/2/3"), steps=[step(0, segment=first), step(1, segment=second)]
    )
    a, b = samples_of(episode, -0.75)
    assert (a.token_ids, a.mask, a.logprobs) == ((7, 8, 9), (0, 0, 1), (0.0, 0.0, -0.5))
    assert (b.token_ids, b.mask) == ((7, 8, 9, 1, 2, 3), (0, 0, 0, 0, 1, 1))
    assert b.logprobs == (0.0, 0.0, 0.0, 0.0, -0.25, -2.0)
    assert (b.images, b.processor) == ((picture,), "p")
    assert [s.advantage for s in (a, b)] == [-0.75, -0.75]
    assert {s.episode for s in (a, b)} == {"run/train-1/2/3"}
    assert [s.name for s in (a, b)] == ["run/train-1/2/3 step 0", "run/train-1/2/3 step 1"]


@given(st.lists(st.integers(1, 100), max_size=40), st.integers(1, 300))
def test_micro_batches_partition_the_samples_within_the_budget(
    lengths: list[int], budget: int
) -> None:
    batches = micro_batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = max(lengths[i] for i in batch) * len(batch)
        assert padded <= budget or len(batch) == 1


def test_micro_batches_by_hand() -> None:
    # longest first: 50 alone; 30 and 20 pad to 60; 20, 10 and 10 pad to 60
    assert micro_batches([10, 50, 20, 30, 10, 20], 60) == [[1], [3, 2], [5, 0, 4]]
