"""The renderer over real gRPC and as a process: the wire, a bad start, its end."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from wmr1.common.v1 import common_pb2 as common
from wmr1.renderer.v1 import renderer_pb2 as pb
from wmr1.renderer.v1 import renderer_pb2_grpc as rpc

from services.renderer.app import registration
from services.renderer.processes import family
from services.renderer.settings import RendererSettings
from tests.processes import Handles, service_process
from tests.renderer_cases import document
from wmkit.blobs import open_blobs
from wmkit.clients.renderer import Page, RendererClient
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.transition import FailureReason, ImageRequest, Rendering
from wmkit.rpc.server import running

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = document("<p style='font-size:200px'>served</p>")
SMALL = ImageRequest(scale=0.2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[str, Path]]:
    """Address and blob folder."""
    blobs = tmp_path_factory.mktemp("blobs")
    settings = RendererSettings(port=0, blobs=str(blobs), pages=2, drain_pause_s=0)
    resources = AsyncExitStack()
    register = registration(settings, resources)
    async with running(settings, "renderer", register, resources.aclose) as server:
        yield server.address, blobs


async def test_a_picture_over_the_wire_and_from_memory(served: tuple[str, Path]) -> None:
    address, blobs = served
    async with RendererClient(address) as client:
        first = await client.render(PAGE, 1080, 2400, SMALL)
        again = await client.render(PAGE, 1080, 2400, SMALL)
    assert first.image is not None
    assert (first.image.width_px, first.image.height_px) == (216, 480)
    assert (first.cached, again.cached) == (False, True)
    assert again.image == first.image
    assert await open_blobs(str(blobs)).get(first.image.digest) == first.image.data


async def test_elements_are_another_question_than_the_picture(served: tuple[str, Path]) -> None:
    async with RendererClient(served[0]) as client:
        bare = await client.render(PAGE, 1080, 2400, SMALL)
        told = await client.render(PAGE, 1080, 2400, ImageRequest(scale=0.2, with_elements=True))
    assert bare.elements == ()
    assert [element.text for element in told.elements] == ["served"]
    assert told.image == bare.image


async def test_an_outcome_is_no_error(served: tuple[str, Path]) -> None:
    async with RendererClient(served[0]) as client:
        rendering = await client.render("", 1080, 2400, SMALL)
    assert (rendering.image, rendering.reason) == (None, FailureReason.NO_DOCUMENT)


async def test_a_batch_answers_under_its_keys_and_fails_item_by_item(
    served: tuple[str, Path],
) -> None:
    pages = [
        Page(f"page {i}", document(f"<p style='font-size:90px'>{i}</p>"), 1080, 2400, SMALL)
        for i in range(20)
    ]
    pages += [Page("wide", PAGE, 99_999, 2400, SMALL), Page("empty", " ", 1080, 2400, SMALL)]
    async with RendererClient(served[0]) as client:
        answers = {key: answer async for key, answer in client.batch_render(pages)}
    assert set(answers) == {page.key for page in pages}
    assert isinstance(answers["wide"], InvalidRequest)
    empty = answers["empty"]
    assert isinstance(empty, Rendering)
    assert empty.reason is FailureReason.NO_DOCUMENT
    digests = set()
    for i in range(20):
        answer = answers[f"page {i}"]
        assert isinstance(answer, Rendering)
        assert answer.image is not None
        digests.add(answer.image.digest)
    assert len(digests) == 20


async def test_the_shortest_request_gets_a_full_picture(served: tuple[str, Path]) -> None:
    async with grpc.aio.insecure_channel(served[0]) as channel:
        stub = rpc.RendererServiceStub(channel)
        response = await stub.Render(pb.RenderRequest(html=PAGE), timeout=30)
    assert response.outcome == pb.RENDER_OUTCOME_OK
    assert (response.image.width_px, response.image.height_px) == (1080, 2400)
    assert response.image.data[:4] == b"\x89PNG"


async def test_no_delivery_makes_no_picture(served: tuple[str, Path]) -> None:
    request = pb.RenderRequest(html=PAGE, image=common.ImageRequest(with_elements=True))
    async with grpc.aio.insecure_channel(served[0]) as channel:
        response = await rpc.RendererServiceStub(channel).Render(request, timeout=30)
    assert response.outcome == pb.RENDER_OUTCOME_OK
    assert not response.HasField("image")
    assert [element.text for element in response.elements] == ["served"]


async def test_html_may_lie_in_the_blob_store(served: tuple[str, Path]) -> None:
    address, blobs = served
    name = await open_blobs(str(blobs)).put(PAGE.encode())
    async with grpc.aio.insecure_channel(address) as channel, RendererClient(address) as client:
        stub = rpc.RendererServiceStub(channel)
        image = common.ImageRequest(delivery=common.DELIVERY_DIGEST, scale=0.2)
        response = await stub.Render(pb.RenderRequest(html_digest=name, image=image), timeout=30)
        direct = await client.render(PAGE, 1080, 2400, SMALL)
        named = await client.draw(Page("", "", 1080, 2400, SMALL, html_digest=name))
        told = await client.draw(Page("", "", 1080, 2400, None, html_digest=name))
        with pytest.raises(grpc.aio.AioRpcError) as missing:
            await stub.Render(pb.RenderRequest(html_digest="0" * 64), timeout=30)
        with pytest.raises(grpc.aio.AioRpcError) as nothing:
            await stub.Render(pb.RenderRequest(), timeout=30)
    assert direct.image is not None
    assert response.image.digest == direct.image.digest
    assert named.image == direct.image
    assert (told.image, [element.text for element in told.elements]) == (None, ["served"])
    assert response.image.data == b""
    assert missing.value.code() is grpc.StatusCode.NOT_FOUND
    assert nothing.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def started(**environment: str) -> tuple[int | None, str]:
    """Exit code and stderr of a service that is not expected to come up."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.renderer",
        env=os.environ | {"WMR1_PORT": "0"} | environment, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, err.decode()


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"WMR1_BROWSER": "/no/such/chromium"},
            "renderer: WMR1_BROWSER=/no/such/chromium is no program that can be run\n",
        ),
        (
            {"PATH": "", "HOME": "/nowhere", "PLAYWRIGHT_BROWSERS_PATH": "/nowhere"},
            "renderer: no Chromium was found: install one (Debian, Ubuntu: apt install "
            "chromium-headless-shell; elsewhere: pip install playwright, "
            "then playwright install chromium-headless-shell), or name one in WMR1_BROWSER\n",
        ),
    ],
    ids=["named", "none"],
)
async def test_without_a_browser_one_sentence_says_how_to_get_one(
    tmp_path: Path, environment: dict[str, str], sentence: str
) -> None:
    assert await started(WMR1_BLOBS=str(tmp_path), **environment) == (2, sentence)


async def test_something_that_is_no_browser_is_one_sentence(tmp_path: Path) -> None:
    code, err = await started(WMR1_BLOBS=str(tmp_path), WMR1_BROWSER="/bin/true")
    assert code == 2
    assert re.search(r"^renderer: the browser /bin/true does not start: ", err, re.MULTILINE)
    assert "Traceback" not in err


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_the_end_of_the_service_is_the_end_of_its_browser(
    tmp_path: Path, how: signal.Signals
) -> None:
    folders = tmp_path / "tmp"
    folders.mkdir()
    settings = {"WMR1_BLOBS": str(tmp_path), "WMR1_PAGES": "1", "TMPDIR": str(folders)}
    async with service_process("renderer", **settings) as (address, process):
        async with RendererClient(address) as client:
            assert (await client.render(PAGE, 1080, 2400, SMALL)).image is not None
        pids = family(process.pid)
        assert len(pids) >= 5
        assert list(folders.glob("wmr1-chromium-*"))
        with Handles(pids) as processes:
            process.send_signal(how)
            assert await process.wait() == (0 if how is signal.SIGTERM else -how)
            await asyncio.to_thread(processes.wait)
        assert not list(folders.glob("wmr1-chromium-*"))


async def test_help_needs_no_browser_library() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "services.renderer",
        "--help",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert b"WMR1_PAGES=0" in out
    assert not re.search(rb"\b(playwright|grpc|PIL|selectolax)$", err, re.MULTILINE)
