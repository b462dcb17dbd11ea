"""Token losses and their weights against values worked out by hand and a loop."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.losses import k3, policy_losses, sampler_correction, token_weights
from services.trainer.recipe import Aggregation, Loss

LOSS = Loss()


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        # on policy: -A, and the gradient of -r A with respect to log p is -r A
        (1.0, 2.0, -2.0, -2.0),
        (1.0, -2.0, 2.0, 2.0),
        # inside the bounds
        (1.2, 1.0, -1.2, -1.2),
        (0.9, -1.0, 0.9, 0.9),
        # A > 0 is clipped above at 1.28, not below
        (1.5, 2.0, -2.56, 0.0),
        (0.5, 2.0, -1.0, -1.0),
        # A < 0 is clipped below at 0.8; above only by the dual clip at 3
        (0.5, -2.0, 1.6, 0.0),
        (2.0, -2.0, 4.0, 4.0),
        (5.0, -2.0, 6.0, 0.0),
    ],
)
def test_worked_values(ratio: float, advantage: float, loss: float, slope: float) -> None:
    logprob = torch.tensor([math.log(ratio) - 1.0], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([-1.0], dtype=torch.float64)
    given = torch.tensor([advantage], dtype=torch.float64)
    token = policy_losses(logprob, old, given, LOSS, torch.zeros(1).long())
    token.loss.sum().backward()  # type: ignore[no-untyped-call]
    assert token.loss.item() == pytest.approx(loss)
    assert logprob.grad is not None
    assert logprob.grad.item() == pytest.approx(slope, abs=1e-12)


def test_flags_say_which_bound_was_active() -> None:
    ratios = torch.tensor([1.5, 0.5, 0.5, 5.0, 1.0, 1.0])
    advantages = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    token = policy_losses(ratios.log(), torch.zeros(6), advantages, LOSS, torch.arange(6))
    assert token.clipped_high.tolist() == [True, False, False, False, False, False]
    assert token.clipped_low.tolist() == [False, False, True, False, False, False]
    assert token.dual_clipped.tolist() == [False, False, False, True, False, False]


def test_k3_is_zero_where_both_agree_and_matches_its_formula() -> None:
    logprobs = torch.tensor([-1.0, -1.0, -1.0])
    reference = torch.tensor([-1.0, -1.0 + math.log(2), -1.0 - math.log(2)])
    # d = 1, 2, 1/2:  d - log d - 1 = 0, 1 - log 2, log 2 - 1/2
    expected = [0.0, 1 - math.log(2), math.log(2) - 0.5]
    assert k3(logprobs, reference).tolist() == pytest.approx(expected, abs=1e-6)


def weigh(
    kind: Aggregation,
    tokens: list[int],
    episodes: list[str],
    *,
    share: float = 1.0,
    total: int = 0,
) -> list[float]:
    return token_weights(
        kind,
        tokens,
        episodes,
        step_share=share,
        iteration_tokens=total or sum(tokens),
        constant_tokens=10,
    )


def test_weights_of_two_episodes_by_hand() -> None:
    # episode a: segments of 2 and 4 tokens; episode b: one of 2
    tokens, episodes = [2, 4, 2], ["a", "a", "b"]
    assert weigh("grpo", tokens, episodes) == [1 / 12, 1 / 12, 1 / 4]
    assert weigh("bnpo", tokens, episodes) == [1 / 8] * 3
    assert weigh("dapo", tokens, episodes) == [1 / 8] * 3
    assert weigh("dr_grpo", tokens, episodes) == [1 / 20] * 3


def test_dapo_weighs_a_token_alike_in_every_step_of_an_iteration() -> None:
    # 8 tokens in two steps: 6 fall into the first, 2 into the second
    first = weigh("dapo", [2, 4], ["a", "a"], share=0.5, total=8)
    second = weigh("dapo", [2], ["b"], share=0.5, total=8)
    assert first == [1 / 4, 1 / 4]
    assert second == [1 / 4]
    assert weigh("bnpo", [2], ["b"], share=0.5, total=8) == [1 / 2]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from("abc"), st.floats(-2, 2)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(["grpo", "bnpo", "dapo", "dr_grpo"]),
)
def test_weighted_sums_equal_the_textbook_loops(
    samples: list[tuple[int, str, float]], kind: Aggregation
) -> None:
    """Every token of a sample has the same loss here; the loops follow the papers."""
    weights = weigh(kind, [n for n, _, _ in samples], [e for _, e, _ in samples])
    ours = sum(w * n * x for w, (n, _, x) in zip(weights, samples, strict=True))
    tokens = [(e, x) for n, e, x in samples for _ in range(n)]
    if kind == "grpo":
        means = []
        for _, group in itertools.groupby(sorted(tokens), key=lambda t: t[0]):
            losses = [x for _, x in group]
            means.append(sum(losses) / len(losses))
        expected = sum(means) / len(means)
    elif kind == "dr_grpo":
        expected = sum(x for _, x in tokens) / (10 * len({e for e, _ in tokens}))
    else:
        expected = sum(x for _, x in tokens) / len(tokens)
    assert ours == pytest.approx(expected, abs=1e-9)


def test_a_sample_without_a_sampled_token_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one sampled token"):
        weigh("grpo", [3, 0], ["a", "b"])


def test_gspo_bounds_the_geometric_mean_of_an_answer() -> None:
    # answer 0: ratios 2 and 1/2, mean 1; answer 1: ratios 1.2 and 1.8, mean sqrt(2.16) > 1.28
    logprobs = torch.tensor([2.0, 0.5, 1.2, 1.8], dtype=torch.float64).log().requires_grad_()
    loss = LOSS.model_copy(update={"objective": "gspo"})
    token = policy_losses(
        logprobs,
        torch.zeros(4, dtype=torch.float64),
        torch.ones(4, dtype=torch.float64),
        loss,
        torch.tensor([0, 0, 1, 1]),
    )
    assert token.ratio.tolist() == pytest.approx([1, 1, math.sqrt(2.16), math.sqrt(2.16)])
    assert token.loss.tolist() == pytest.approx([-1, -1, -1.28, -1.28])
    token.loss.mean().backward()  # type: ignore[no-untyped-call]
    # Both tokens of answer 0 share its gradient, whatever their own ratios.
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([-0.25, -0.25, 0, 0])


def test_cispo_keeps_the_gradient_of_every_token_and_caps_its_weight() -> None:
    ratios = torch.tensor([0.5, 1.0, 2.0, 9.0], dtype=torch.float64)
    old = torch.full((4,), -1.0, dtype=torch.float64)
    logprobs = (ratios.log() + old).requires_grad_()
    loss = LOSS.model_copy(update={"objective": "cispo", "cispo_cap": 4.0})
    token = policy_losses(
        logprobs, old, torch.tensor([1.0, 1.0, -1.0, 1.0]).double(), loss, torch.arange(4)
    )
    token.loss.sum().backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([-0.5, -1.0, 2.0, -4.0])
    assert token.clipped_high.tolist() == [False, False, False, True]


@pytest.mark.parametrize("objective", ["clip", "gspo", "cispo"])
def test_absurd_ratios_leave_gradients_finite(objective: str) -> None:
    """exp(300) overflows; its token is bounded, and its gradient must not become NaN."""
    logprobs = torch.tensor([0.0, 0.0, -300.0, -300.0], requires_grad=True)
    old = torch.tensor([-300.0, -300.0, 0.0, 0.0])
    loss = LOSS.model_copy(update={"objective": objective})
    token = policy_losses(
        logprobs, old, torch.tensor([1.0, -1.0, 1.0, -1.0]), loss, torch.arange(4)
    )
    token.loss.sum().backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert bool(torch.isfinite(logprobs.grad).all())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # answers [r = 3, 0.5] and [1, 0.25]; cap 2, floor 0.4; products 1.5 and 0.25
        ("token_truncate", [2.0, 0.5, 1.0, 0.4]),
        ("token_mask", [0.0, 0.5, 1.0, 0.0]),
        ("sequence_truncate", [1.5, 1.5, 0.4, 0.4]),
        ("sequence_mask", [1.5, 1.5, 0.0, 0.0]),
    ],
)
def test_corrections_by_hand(kind: str, expected: list[float]) -> None:
    loss = LOSS.model_copy(
        update={"correction": kind, "correction_cap": 2.0, "correction_floor": 0.4}
    )
    trainer = torch.tensor([3.0, 0.5, 1.0, 0.25]).log().requires_grad_()
    found = sampler_correction(trainer, torch.zeros(4), loss, torch.tensor([0, 0, 1, 1]))
    assert found.tolist() == pytest.approx(expected)
    assert not found.requires_grad
