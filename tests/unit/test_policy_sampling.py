"""Choosing tokens: exact frequencies, greedy ties to the largest, ruled-out tokens, streams."""

import math

import numpy as np
import torch

from services.policy.sampling import choose, uniforms


def test_tokens_come_as_often_as_their_probability_says() -> None:
    """Inverting the distribution on an even grid of 10 000 numbers leaves no chance in it."""
    n, temperature = 10_000, 0.5
    logits = torch.tensor([0.3, -1.0, 2.0, 0.0, -torch.inf])
    grid = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    tokens, logprobs = choose(logits.expand(n, -1), torch.full((n,), temperature), grid)
    weights = [math.exp(x / temperature) for x in (0.3, -1.0, 2.0, 0.0)] + [0.0]
    for token, weight in enumerate(weights):
        share = weight / sum(weights)
        assert abs(int((tokens == token).sum()) - n * share) <= 1
        if share:
            assert torch.allclose(
                logprobs[tokens == token], torch.tensor(math.log(share)), atol=1e-6
            )


def test_temperature_zero_takes_the_largest_and_reports_temperature_one() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0], [5.0, 0.0, 0.0]])
    tokens, logprobs = choose(logits, torch.zeros(2), torch.tensor([0.01, 0.99]).double())
    assert tokens.tolist() == [1, 0]
    expected = [3 - math.log(math.e + math.e**2 + math.e**3), -math.log(1 + 2 * math.exp(-5))]
    assert torch.allclose(logprobs, torch.tensor(expected))


def test_rows_of_one_batch_keep_their_own_temperature() -> None:
    logits = torch.tensor([0.0, 1.0]).expand(3, -1)
    _, logprobs = choose(logits, torch.tensor([1.0, 0.25, 0.0]), torch.full((3,), 0.999).double())
    expected = [-math.log1p(math.exp(-gap)) for gap in (1.0, 4.0, 1.0)]
    assert torch.allclose(logprobs, torch.tensor(expected))


def test_the_ends_of_the_unit_interval_never_pick_an_impossible_token() -> None:
    logits = torch.full((2, 1000), -torch.inf)
    logits[:, 400:403] = 0.0
    ends = torch.tensor([0.0, math.nextafter(1.0, 0.0)], dtype=torch.float64)
    tokens, logprobs = choose(logits, torch.ones(2), ends)
    assert tokens.tolist() == [400, 402]
    assert torch.allclose(logprobs, torch.tensor(-math.log(3)))


def test_a_seed_gives_one_stream_however_much_of_it_is_used() -> None:
    long = uniforms(7, 1000)
    for count in (1, 15, 16, 999):
        np.testing.assert_array_equal(uniforms(7, count), long[:count])
    assert abs(long.mean() - 0.5) < 0.03
    assert not np.array_equal(uniforms(8, 1000), long)
    for seed in (-1, -(2**63), 2**63 - 1):
        assert 0 <= uniforms(seed, 3).min() <= uniforms(seed, 3).max() < 1
