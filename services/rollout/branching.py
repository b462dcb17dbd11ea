"""Where a branch begins: the committed path up to a step of a stored trajectory.

Reads the trajectory from the blob store; nothing is played here. States are values, so the
path need not be walked again: the payload of the root state is enough.
"""

from dataclasses import dataclass

from services.rollout.failures import EpisodeFailed
from wmkit.domain.actions import Action, from_dict
from wmkit.domain.episode import Branch, Step, Trajectory
from wmkit.domain.screen import View
from wmkit.domain.sources import FromPayload
from wmkit.domain.tasks import Task
from wmkit.ports import BlobStore


@dataclass(frozen=True, slots=True)
class Root:
    """`steps`, `log` and `calls` are those before the root; `screens` ends with the root's."""

    task: Task
    backend: str
    first: FromPayload
    state: FromPayload
    steps: tuple[Step, ...]
    log: tuple[Action, ...]
    screens: tuple[str, ...]
    calls: int
    payloads: dict[str, str]
    view: View | None


async def find_root(branch: Branch, blobs: BlobStore) -> Root:
    """Raises EpisodeFailed for a step that the trajectory does not have, and what blobs raise."""
    stored = Trajectory.model_validate_json(await blobs.get(branch.trajectory))
    if branch.root >= len(stored.steps):
        raise EpisodeFailed(
            f"{stored.job.job_id} has {len(stored.steps)} steps, so none is a root {branch.root}",
            retryable=False,
            hopeless=True,
        )
    before, root = stored.steps[: branch.root], stored.steps[branch.root]
    payloads = {}
    for step in (*before, root):
        for state_id in (step.state_id, *(call.state_id for call in step.imagined)):
            if state_id in stored.payloads:
                payloads[state_id] = stored.payloads[state_id]
    screen = (stored.screen["width_px"], stored.screen["height_px"])
    seen = before[-1].seen_px if before else (0, 0)
    return Root(
        task=stored.task,
        backend=stored.backend,
        first=_source(stored, stored.steps[0].state_id),
        state=_source(stored, root.state_id),
        steps=before,
        log=tuple(from_dict(step.action) for step in before if step.action is not None),
        screens=tuple(step.screenshot for step in (*before, root)),
        calls=sum(call.answered for step in before for call in step.imagined),
        payloads=payloads,
        view=View(screen, seen) if all(seen) else None,
    )


def _source(stored: Trajectory, state_id: str) -> FromPayload:
    try:
        return FromPayload(stored.payloads[state_id], state_id)
    except KeyError:
        raise EpisodeFailed(
            f"{stored.job.job_id} lacks the payload of state {state_id}",
            retryable=False,
            hopeless=True,
        ) from None
