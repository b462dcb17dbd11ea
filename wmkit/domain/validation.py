"""What must hold of every stored trajectory, as sentences about what does not.

Looks at the document alone: whether the blobs that it names exist is `wmkit.trajectories`'
affair, whether the policy was any good is nobody's here.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

from wmkit.domain.actions import Answer, Finish, from_dict
from wmkit.domain.episode import Ending, Step, Trajectory
from wmkit.domain.errors import InvalidAction
from wmkit.domain.transition import Outcome

ROUNDING = 1e-4
"""By which a log-probability may exceed 0: sampling is done in float32."""


def problems(trajectory: Trajectory) -> list[str]:
    """One sentence for each thing that is wrong; empty for a valid trajectory."""
    return [*_path(trajectory), *_ending(trajectory), *_limits(trajectory), *_steps(trajectory)]


def _path(trajectory: Trajectory) -> Iterator[str]:
    steps = trajectory.steps
    if not steps:
        yield "it has no step"
        return
    if [step.index for step in steps] != list(range(len(steps))):
        yield "its steps are not numbered from 0"
    for step, after in pairwise(steps):
        if step.next_state_id != after.state_id:
            yield f"step {step.index} does not lead to the state of step {after.index}"
    last = steps[-1]
    if trajectory.final_state_id != (last.next_state_id or last.state_id):
        yield "the last step does not lead to the final state"
    met = {trajectory.final_state_id}
    for step in steps:
        met.add(step.state_id)
        met.update(call.state_id for call in step.imagined if call.answered)
    for state_id in sorted(met - set(trajectory.payloads)):
        yield f"state {state_id} has no payload"


def _ending(trajectory: Trajectory) -> Iterator[str]:
    if not trajectory.steps:
        return
    *before, last = trajectory.steps
    for step in before:
        if step.outcome is None:
            yield f"step {step.index} was not carried out and is not the last one"
    name = last.action["action"] if last.action else ""
    fits = {
        Ending.FINISH: name == Finish.name,
        Ending.ANSWER: name == Answer.name and trajectory.answer is not None,
        Ending.UNPARSABLE: last.action is None and bool(last.parse_error),
        Ending.STEP_LIMIT: last.outcome is not None,
    }
    if not fits[trajectory.ending]:
        yield f"it ends by {trajectory.ending}, and its last step does not"
    if trajectory.ending is Ending.STEP_LIMIT and trajectory.length != _limit(trajectory):
        yield f"it ends at its step limit after {trajectory.length} of {_limit(trajectory)} steps"


def _limits(trajectory: Trajectory) -> Iterator[str]:
    spec = trajectory.job.spec
    # An action that cannot be read is a step too, and may follow the last but one.
    if trajectory.length > _limit(trajectory):
        yield f"it has {trajectory.length} steps, the limit is {_limit(trajectory)}"
    if trajectory.calls > spec.max_calls:
        yield f"it has {trajectory.calls} answered calls, the limit is {spec.max_calls}"
    for step in trajectory.steps:
        answered = sum(call.answered for call in step.imagined)
        if answered > spec.max_calls_per_thought:
            yield f"step {step.index} has {answered} answered calls in one thought"


def _limit(trajectory: Trajectory) -> int:
    branch = trajectory.job.branch
    if branch is None:
        return trajectory.task.step_limit
    return branch.root + branch.horizon


def _steps(trajectory: Trajectory) -> Iterator[str]:
    for step in trajectory.steps:
        for problem in (*_action(step), *_imagined(step), *_segment(trajectory, step)):
            yield f"step {step.index}: {problem}"
    versions = {
        version
        for step in trajectory.steps[_root(trajectory) :]
        for version, sampled in zip(step.segment.versions, step.segment.mask, strict=True)
        if sampled
    }
    if len(versions) > 1 and not trajectory.job.spec.mixed_versions:
        yield f"its tokens are of {len(versions)} policy versions"


def _root(trajectory: Trajectory) -> int:
    return trajectory.job.branch.root if trajectory.job.branch else 0


def _action(step: Step) -> Iterator[str]:
    if step.action is None:
        if not step.parse_error:
            yield "there is neither an action nor a reason why"
        return
    try:
        from_dict(step.action)
    except InvalidAction as error:
        yield f"its action cannot be read: {error.message}"
    if step.outcome is Outcome.FAILED:
        yield "a failed step was committed"
    if step.outcome is not None and (step.outcome is Outcome.UNCHANGED) != (
        step.next_state_id == step.state_id
    ):
        yield f"its outcome is {step.outcome}, and its states say otherwise"
    if (step.outcome is None) != (not step.next_state_id):
        yield "outcome and next state do not go together"


def _imagined(step: Step) -> Iterator[str]:
    screens = 0
    for call in step.imagined:
        if call.parent > screens:
            if call.answered:
                yield f"a call starts from imagined screen {call.parent} of {screens}"
        elif call.answered:
            screens += 1
            if call.k != screens:
                yield f"imagined screen {screens} is numbered {call.k}"
            if not (call.state_id and call.screenshot and call.action):
                yield f"imagined screen {screens} lacks its state, picture or action"


def _segment(trajectory: Trajectory, step: Step) -> Iterator[str]:
    segment, spec = step.segment, trajectory.job
    rows = list(zip(segment.mask, segment.logprobs, segment.versions, strict=True))
    if not any(mask for mask, _, _ in rows):
        yield "no token was sampled"
    for i, (mask, logprob, version) in enumerate(rows):
        if mask not in (0, 1):
            yield f"token {i} has mask {mask}"
        elif not mask and (logprob != 0.0 or version != -1):
            yield f"token {i} was given, and has a log-probability or a version"
        elif mask and not (math.isfinite(logprob) and logprob <= ROUNDING):
            yield f"token {i} has log-probability {logprob}"
        elif mask and step.index >= _root(trajectory) and version < spec.min_version:
            yield f"token {i} is of version {version}, {spec.min_version} was asked for"
        else:
            continue
        return  # one is enough: a shifted list is wrong everywhere
