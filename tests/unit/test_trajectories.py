"""Trajectories as files: read back exactly, by other readers too; validated; shown."""

import json
import re
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from services.rollout.episode import play
from tests.rollout_cases import FINISH, L, R, a_job, a_world, acts, an_agent, call
from wmkit.blobs import MemoryBlobs
from wmkit.domain.episode import Branch, Ending, Trajectory
from wmkit.domain.errors import CorruptBlob, InvalidRequest, NotFound
from wmkit.domain.transition import Outcome
from wmkit.domain.validation import problems
from wmkit.trajectories import Bundle, collect, pack, store, unpack
from wmkit.trajectories.film import film, lines


async def played(*stretches: str, goal: str = "startR", **changes: Any) -> tuple[Trajectory, Any]:
    world = a_world(goal)
    stretches = stretches or ("<think>" + call(L), "</think>Action: " + R, FINISH)
    agent = an_agent(*stretches)
    made = await play(a_job(**changes), world=world, policy=agent, blobs=world.blobs)
    return made, world.blobs


async def test_a_file_is_read_back_exactly_and_its_bytes_depend_on_its_content_alone() -> None:
    trajectory, blobs = await played()
    bundle = await collect(trajectory, blobs)
    data = pack(bundle)
    again = unpack(data)
    assert again.trajectory == trajectory
    assert again.blobs == bundle.blobs
    assert pack(again) == data
    fresh = MemoryBlobs()
    digest = await store(again, fresh)
    assert await fresh.get(digest) == trajectory.model_dump_json().encode()
    assert await collect(trajectory, fresh) == bundle


async def test_other_readers_see_tokens_pictures_and_the_document(tmp_path: Any) -> None:
    trajectory, blobs = await played()
    bundle = await collect(trajectory, blobs)
    path = tmp_path / "one.safetensors"
    path.write_bytes(pack(bundle))
    tensors = load_file(path)
    ends = tensors["segments"]
    assert ends[0] == 0 and len(ends) == len(trajectory.steps) + 1
    for step, start, end in zip(trajectory.steps, ends[:-1], ends[1:], strict=True):
        assert tuple(tensors["token_ids"][start:end]) == step.segment.token_ids
        assert tuple(tensors["logprobs"][start:end]) == step.segment.logprobs
        assert tuple(tensors["mask"][start:end]) == step.segment.mask
        assert tuple(tensors["versions"][start:end]) == step.segment.versions
    picture = tensors["blob/" + trajectory.steps[0].screenshot]
    assert picture.dtype == np.uint8 and picture.tobytes().startswith(b"\x89PNG")
    with safe_open(path, "np") as file:
        metadata = file.metadata()
    assert (metadata["format"], metadata["format_version"]) == ("wmr1-trajectory", "1")
    document = json.loads(metadata["trajectory"])
    assert document["steps"][0]["imagined"][0]["answered"] is True
    assert "token_ids" not in document["steps"][0]["segment"]


async def test_a_missing_blob_and_a_damaged_file_are_said_so() -> None:
    trajectory, blobs = await played()
    with pytest.raises(NotFound, match="names blob"):
        await collect(trajectory, MemoryBlobs())
    bare = await collect(trajectory, blobs, pictures=False)
    assert set(bare.blobs) == set(trajectory.payloads.values())
    data = pack(bare)
    with pytest.raises(InvalidRequest, match="no safetensors file"):
        unpack(b"{}")
    with pytest.raises(InvalidRequest, match=r"no safetensors file: .* outside the file"):
        unpack(data[:-1])
    with pytest.raises(CorruptBlob):
        unpack(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(InvalidRequest, match="format version 2"):
        unpack(data.replace(b'"format_version":"1"', b'"format_version":"2"'))
    with pytest.raises(InvalidRequest, match="holds no trajectory"):
        unpack(data.replace(b"wmr1-trajectory", b"wmr1-something!"))


@pytest.mark.parametrize(
    "stretches",
    [
        (),
        (acts("wait()"),) * 20,
        (acts("answer(text='5')"),),
        ("no action at all",),
        (acts(R), acts("type(content='x')")),
        ("<think>" + call(L), call("junk"), call(R, 1), call(R, 7), "</think>Action: " + R, FINISH),
        ("<think>" + call("scroll(direction='up')"), "</think>Action: " + R, FINISH),
    ],
)
async def test_whatever_a_worker_stores_is_valid(stretches: tuple[str, ...]) -> None:
    trajectory, blobs = await played(*stretches)
    assert problems(trajectory) == []
    branch = Branch(
        trajectory=await blobs.put(trajectory.model_dump_json().encode()), root=0, horizon=2
    )
    world = a_world()
    agent = an_agent(acts(L), acts(R))
    world.blobs = blobs
    of = a_job(branch=branch)
    assert problems(await play(of, world=world, policy=agent, blobs=blobs)) == []


def changed(trajectory: Trajectory, step: int, **changes: Any) -> Trajectory:
    steps = list(trajectory.steps)
    segment = {k: v for k, v in changes.items() if k in ("logprobs", "mask", "versions")}
    rest = {k: v for k, v in changes.items() if k not in segment}
    if segment:
        rest["segment"] = steps[step].segment.model_copy(update=segment)
    steps[step] = steps[step].model_copy(update=rest)
    return trajectory.model_copy(update={"steps": tuple(steps)})


async def test_what_is_wrong_with_a_trajectory_is_named() -> None:
    good, _ = await played()
    segment = good.steps[0].segment
    first = segment.mask.index(1)
    nan = (*segment.logprobs[:first], float("nan"), *segment.logprobs[first + 1 :])
    shifted = (*segment.mask[1:], 0)
    call_ = good.steps[0].imagined[0]
    cases = [
        (good.model_copy(update={"steps": ()}), "no step"),
        (good.model_copy(update={"final_state_id": "x"}), "does not lead to the final state"),
        (good.model_copy(update={"payloads": {}}), "has no payload"),
        (good.model_copy(update={"ending": Ending.ANSWER}), "ends by answer"),
        (good.model_copy(update={"ending": Ending.STEP_LIMIT}), "ends by step_limit"),
        (changed(good, 0, next_state_id="x"), "does not lead to the state of step 1"),
        (changed(good, 1, index=5), "not numbered"),
        (changed(good, 0, outcome=Outcome.UNCHANGED), "its states say otherwise"),
        (changed(good, 0, outcome=Outcome.FAILED), "failed step was committed"),
        (changed(good, 0, action={"action": "fly"}), "cannot be read"),
        (changed(good, 0, action=None), "neither an action nor a reason"),
        (changed(good, 0, logprobs=nan), "log-probability nan"),
        (changed(good, 0, logprobs=(0.5,) * len(nan)), "was given, and has"),
        (changed(good, 0, mask=shifted), "token"),
        (changed(good, 0, mask=(0,) * len(nan)), "no token was sampled"),
        (changed(good, 1, versions=tuple(v + 1 for v in good.steps[1].segment.versions)), "token"),
        (changed(good, 0, imagined=(call_.model_copy(update={"k": 2}),)), "is numbered 2"),
        (changed(good, 0, imagined=(call_.model_copy(update={"parent": 1}),)), "starts from"),
        (changed(good, 0, imagined=(call_,) * 9), "answered calls"),
    ]
    for broken, words in cases:
        assert any(words in problem for problem in problems(broken)), (words, problems(broken))
    late = good.model_copy(update={"job": good.job.model_copy(update={"min_version": 3})})
    assert any("is of version 0, 3 was asked for" in problem for problem in problems(late))


async def test_the_filmstrip_shows_every_screen_and_runs_nothing_that_was_written() -> None:
    hostile = "<think><script>alert(1)</script>" + call(L)
    trajectory, blobs = await played(hostile, "</think>Action: " + R, FINISH)
    page = film(await collect(trajectory, blobs))
    assert page.count("data:image/png;base64,") == 4  # two steps, one imagined, the end
    assert "<script" not in page and "&lt;script&gt;" in page
    assert re.search(r"1\. finish\(", page) and 'class="success"' in page
    assert film(Bundle(trajectory)).count('src=""') == 4
    assert lines(trajectory)[2].strip().startswith("imagined tap(point=[0.26, 0.51]): changed")
