"""Running sums over an update, kept on token level so that no micro-batch is averaged twice."""

from dataclasses import dataclass, field

from torch import Tensor

from services.trainer.losses import TokenLosses
from services.trainer.world import World

SUMS = (
    "count", "nll", "ratio", "clipped_low", "clipped_high", "dual_clipped", "kl", "correction",
    "masked", "gap_count", "gap",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """Fractions and means are over sampled tokens, `loss` and `grad_norm` over steps."""

    count: float = 0
    nll: float = 0.0
    ratio: float = 0.0
    clipped_low: float = 0.0
    clipped_high: float = 0.0
    dual_clipped: float = 0.0
    kl: float = 0.0
    correction: float = 0.0
    masked: float = 0.0
    gap_count: float = 0
    gap: float = 0.0
    gap_max: float = 0.0
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    lr: float = 0.0

    def tokens(
        self,
        token: TokenLosses,
        logprobs: Tensor,
        old: Tensor,
        divergence: Tensor | None,
        correction: Tensor | None,
        on_policy: bool,
    ) -> None:
        """Add a micro-batch. `on_policy`: no weight has changed since sampling, so any
        difference of log-probabilities is one between sampler and trainer."""
        self.count += len(old)
        self.nll -= old.sum().item()
        self.ratio += token.ratio.sum().item()
        self.clipped_low += token.clipped_low.sum().item()
        self.clipped_high += token.clipped_high.sum().item()
        self.dual_clipped += token.dual_clipped.sum().item()
        if divergence is not None:
            self.kl += divergence.detach().sum().item()
        self.correction += len(old) if correction is None else correction.sum().item()
        self.masked += 0 if correction is None else (correction == 0).sum().item()
        if on_policy:
            gap = (logprobs - old).abs()
            self.gap_count += len(old)
            self.gap += gap.sum().item()
            self.gap_max = max(self.gap_max, gap.max().item())

    def merge(self, world: World) -> None:
        """Make the sums over tokens those of all processes; steps are counted by all alike."""
        totals = world.total([getattr(self, name) for name in SUMS])
        for name, value in zip(SUMS, totals, strict=True):
            setattr(self, name, value)
        self.gap_max = max(world.share(self.gap_max))

    def step(self, loss: float, norm: float, lr: float) -> None:
        """Add an optimizer step; the learning rate of the last one is kept."""
        self.losses.append(loss)
        self.norms.append(norm)
        self.lr = lr

    def metrics(self) -> dict[str, float]:
        count, steps = max(1, self.count), max(1, len(self.losses))
        return {
            "loss": sum(self.losses) / steps,
            "grad_norm": sum(self.norms) / steps,
            "lr": self.lr,
            "optimizer_steps": len(self.losses),
            "entropy": self.nll / count,
            "ratio": self.ratio / count,
            "clip_low": self.clipped_low / count,
            "clip_high": self.clipped_high / count,
            "dual_clip": self.dual_clipped / count,
            "kl": self.kl / count,
            "correction": self.correction / count,
            "correction_masked": self.masked / count,
            "logprob_gap": self.gap / max(1, self.gap_count),
            "logprob_gap_max": self.gap_max,
        }
