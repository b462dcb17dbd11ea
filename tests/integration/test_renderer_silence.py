"""No request leaves the browser and no file is read: a port stays silent, a colour unseen.

Every wall is tested, so documents are drawn as the sanitizer leaves them and also untouched.
"""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from PIL import Image

from services.renderer.engine import LocalRenderer
from services.renderer.pool import Job
from tests.renderer_cases import data, document, draw, pixels, renderer
from wmkit.domain.transition import ImageRequest

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL = ImageRequest(scale=0.1)
PLAIN = document("<p style='font-size:90px'>plain</p>")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def drawing() -> AsyncIterator[LocalRenderer]:
    async with renderer(pages=1) as opened:
        yield opened


class Ear(asyncio.DatagramProtocol):
    """Hears TCP and UDP on one port of this machine."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.port = 0

    def datagram_received(self, data: bytes, _: object) -> None:
        self.heard.append(data)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(b"connected")
        self.heard.append(await reader.readline())
        writer.close()

    async def hears(self) -> None:
        """Nothing was heard so far, although whoever does call gets through, both ways."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"tcp\n")
        await reader.read()
        writer.close()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", self.port)
        )
        transport.sendto(b"udp")
        while b"udp" not in self.heard:
            await asyncio.sleep(0)
        transport.close()
        assert self.heard == [b"connected", b"tcp\n", b"udp"]


@asynccontextmanager
async def listening() -> AsyncIterator[Ear]:
    ear = Ear()
    async with await asyncio.start_server(ear.accept, "127.0.0.1", 0) as server:
        ear.port = server.sockets[0].getsockname()[1]
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: ear, local_addr=("127.0.0.1", ear.port)
        )
        try:
            yield ear
        finally:
            transport.close()


def links(url: str) -> str:
    kinds = (
        "stylesheet", "preload' as='image", "preload' as='font' crossorigin='", "prefetch",
        "preconnect", "dns-prefetch", "icon", "apple-touch-icon", "manifest", "modulepreload",
        "prerender", "search", "import", "pingback", "compression-dictionary", "expect",
        "alternate stylesheet", "mask-icon", "next", "stylesheet' media='print",
    )  # fmt: skip
    return "".join(f"<link rel='{rel}' href='{url}/link{i}'>" for i, rel in enumerate(kinds)) + (
        f"<link rel=preload as=image imagesrcset='{url}/imagesrcset 1x' href='{url}/set'>"
    )


# `{u}` is where each of them would call; `{p}` the port alone.
BODIES = {
    "images": "<img src='{u}/img'><img srcset='{u}/srcset 1x, {u}/srcset2 2x'><picture><source "
    "srcset='{u}/source'><img src=data:,></picture><input type=image src='{u}/input'>"
    "<table background='{u}/table'><td background='{u}/td'></table><img src='//127.0.0.1:{p}/rel'>"
    "<img loading=lazy src='{u}/lazy'><img lowsrc='{u}/low' longdesc='{u}/desc'>",
    "frames": "<iframe src='{u}/frame'></iframe><iframe srcdoc=\"<img src='{u}/srcdoc'>\"></iframe>"
    "<object data='{u}/object'></object><embed src='{u}/embed'><portal src='{u}/portal'></portal>"
    "<fencedframe></fencedframe><frameset><frame src='{u}/frameset'></frameset>"
    "<applet code='{u}/applet' archive='{u}/jar'></applet>",
    "media": "<video src='{u}/video' poster='{u}/poster' autoplay preload=auto></video><audio "
    "src='{u}/audio' autoplay preload=auto></audio><video autoplay><source src='{u}/source'>"
    "<track default src='{u}/track'></video><bgsound src='{u}/bgsound'>",
    "svg": "<svg xmlns:xlink='http://www.w3.org/1999/xlink'><image href='{u}/image' width=9 "
    "height=9 /><image xlink:href='{u}/xlink' width=9 height=9 /><use href='{u}/use#a'/><use "
    "xlink:href='{u}/use2#a'/><filter id=f><feImage href='{u}/feimage'/></filter><rect width=9 "
    "height=9 fill='url({u}/paint#a)' filter='url({u}/filter#a)' mask='url({u}/mask#m)' "
    "clip-path='url({u}/clip#c)' style='marker:url({u}/marker#m)'/><rect width=9 height=9 "
    "filter='url(#f)'/><style>@import '{u}/svgimport';</style><script href='{u}/svgscript'/>"
    "<a href='{u}/a'><animate attributeName=href from='{u}/from' to='{u}/to' dur='1s'/></a></svg>"
    "<math href='{u}/math'><mi xlink:href='{u}/mi'>x</mi></math>",
    "styles": "<style>@import url({u}/import1);@import '{u}/import2' screen;@import "
    "url('{u}/import3') layer(a) supports(display:grid);@namespace url({u}/ns);@font-face"
    "{{font-family:F;src:url({u}/font) format('woff2'),url({u}/font2)}}@font-face{{font-family:G;"
    "src:url({u}/font3);unicode-range:U+0-10FFFF}}@counter-style c{{system:cyclic;symbols:"
    "url({u}/counter)}}p{{font:40px F,G;background:url({u}/bg),image-set('{u}/set' 1x,url({u}/set2)"
    " 2x);cursor:url({u}/cursor),auto;list-style-image:url({u}/list);border-image:url({u}/border)"
    " 9;mask-image:url({u}/maskimage);clip-path:url({u}/clippath#x);shape-outside:url({u}/shape);"
    "filter:url({u}/cssfilter#x)}}p::before{{content:url({u}/content)}}p::after{{content:"
    "image-set('{u}/content2' 1x)}}b{{background:-webkit-image-set(url({u}/wset) 1x);background:"
    "cross-fade(url({u}/fade),url({u}/fade2),50%);background:\\75rl({u}/escaped);background:"
    "u\\72 l({u}/escaped2)}}@page{{background:url({u}/page)}}@view-transition{{navigation:auto}}"
    "::view-transition{{background:url({u}/transition)}}:root{{--v:url({u}/var)}}i{{background:"
    "var(--v);background:src('{u}/src')}}a:visited{{background:url({u}/visited)}}</style>"
    "<p>text<b>bold</b><i>it</i><a href='{u}/'>a</a><p style='background:url({u}/style)'>text",
    "leaving": "<meta http-equiv=refresh content='0;url={u}/refresh'><meta http-equiv=Link "
    "content='<{u}/metalink>;rel=preload;as=image'><meta http-equiv=content-security-policy "
    "content=\"default-src *; report-uri {u}/report\"><base href='{u}/'><a href='{u}/a' "
    "ping='{u}/ping' download autofocus>a</a><form action='{u}/form'><input autofocus "
    "formaction='{u}/formaction'><button formaction='{u}/button'>b</button></form><img src=base>"
    "<body background='{u}/body'><html manifest='{u}/manifest'>",
    "scripts": "<script src='{u}/script'></script><script type=speculationrules>{{\"prefetch\":"
    "[{{\"source\":\"list\",\"urls\":[\"{u}/speculation\"]}}],\"prerender\":[{{\"source\":\"list\","
    "\"urls\":[\"{u}/prerender\"]}}]}}</script><script type=importmap>{{\"imports\":{{\"a\":"
    "\"{u}/importmap\"}}}}</script><script>fetch('{u}/fetch');navigator.sendBeacon('{u}/beacon');"
    "new WebSocket('ws://127.0.0.1:{p}/ws');new EventSource('{u}/events');new Image().src="
    "'{u}/image';open('{u}/open');new Worker('{u}/worker')</script><noscript><img "
    "src='{u}/noscript'></noscript><img src=x onerror=\"fetch('{u}/onerror')\">",
    "webrtc": "<script>var c=new RTCPeerConnection({{iceServers:[{{urls:['stun:127.0.0.1:{p}',"
    "'turn:127.0.0.1:{p}?transport=tcp'],username:'a',credential:'b'}}]}});"
    "c.createDataChannel('x');c.createOffer().then(o=>c.setLocalDescription(o))</script>",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["links", *BODIES])
async def test_nothing_leaves_whether_sanitized_or_not(drawing: LocalRenderer, kind: str) -> None:
    async with listening() as ear:
        url = f"http://127.0.0.1:{ear.port}"
        if kind == "links":
            html = document("<p>text</p>", head=links(url))
        else:
            html = document(BODIES[kind].format(u=url, p=ear.port) + "<p>text</p>")
        assert data(await draw(drawing, html, SMALL))
        raw = Job(html, 1080, 2400, SMALL, False, 20.0)
        for _ in range(2):
            # A document that navigates ends in whatever way; see below for what comes after.
            await asyncio.gather(drawing._pool.draw(raw), return_exceptions=True)
        after = data(await draw(drawing, PLAIN))
        assert data(await draw(drawing, PLAIN)) == after
        await ear.hears()


CALLS_HOME = """async port => {
  const url = `http://127.0.0.1:${port}/`, name = `http://localhost:${port}/`;
  const failed = await Promise.all([url, name].map(
    each => fetch(each, { mode: 'no-cors' }).then(() => 0, () => 1)));
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  await new Promise(done => { socket.onclose = done; });
  return failed[0] + failed[1];
}"""


async def test_even_a_script_would_reach_no_one(drawing: LocalRenderer) -> None:
    """The browser's own walls, in a page with everything allowed that a context can allow."""
    browser = drawing._pool._browser
    assert browser is not None
    async with listening() as ear:
        send = browser._devtools.send
        context = await send("Target.createBrowserContext")
        target = await send("Target.createTarget", {"url": "about:blank"} | context)
        attached = await send("Target.attachToTarget", target | {"flatten": True})
        script = f"({CALLS_HOME})({ear.port})"
        answer = await send(
            "Runtime.evaluate",
            {"expression": script, "awaitPromise": True},
            attached["sessionId"],
        )
        assert answer["result"]["value"] == 2
        await send("Target.disposeBrowserContext", context)
        await ear.hears()


async def test_no_script_runs_even_where_no_policy_forbids_it(drawing: LocalRenderer) -> None:
    browser = drawing._pool._browser
    assert browser is not None
    page = await browser.open_page()
    loaded = asyncio.Event()
    page._listen("Page.loadEventFired", lambda _: loaded.set())
    # A document that was navigated to has no policy of ours.
    script = "<title>before</title><script>document.title = 'ran'</script>"
    await page._send("Page.navigate", {"url": f"data:text/html,{script}"})
    await loaded.wait()
    title = await page._send("Runtime.evaluate", {"expression": "document.title"})
    assert title["result"]["value"] == "before"
    await page.close()


SECRET = (255, 0, 255)


@pytest.mark.parametrize(
    "body",
    [
        "<iframe src='{u}.html' width=900 height=900></iframe>",
        "<object data='{u}.html' width=900 height=900></object>",
        "<embed src='{u}.html' width=900 height=900>",
        "<img src='{u}.png' width=900 height=900>",
        "<svg width=900 height=900><image href='{u}.png' width=900 height=900 /></svg>",
        "<svg width=900 height=900><use href='{u}.svg#r'/></svg>",
        "<video poster='{u}.png' width=900 height=900></video>",
        "<div style='width:900px;height:900px;background:url({u}.png)'></div>",
        "<style>@import url({u}.css);</style>",
        "<link rel=stylesheet href='{u}.css'>",
        "<meta http-equiv=refresh content='0;url={u}.html'>",
        "<script>location='{u}.html'</script>",
        "<base href='{u}/../'><img src='secret.png' width=900 height=900>",
    ],
)
async def test_nothing_of_a_file_is_seen(drawing: LocalRenderer, tmp_path: Path, body: str) -> None:
    paint = f"rgb{SECRET}"
    sheet = f"body,div,#render-target{{background:{paint}!important}}"
    (tmp_path / "secret.html").write_text(f"<body style='background:{paint}'>")
    (tmp_path / "secret.css").write_text(sheet)
    (tmp_path / "secret.svg").write_text(
        f"<svg xmlns='http://www.w3.org/2000/svg'><rect id='r' width='900' height='900' "
        f"fill='{paint}'/></svg>"
    )
    Image.new("RGB", (90, 90), SECRET).save(tmp_path / "secret.png")
    html = document(body.format(u=(tmp_path / "secret").as_uri()) + "<p>text</p>")
    shown = pixels(await draw(drawing, html))
    raw = Job(html, 1080, 2400, ImageRequest(scale=0.25), False, 20.0)
    pictures = [shown]
    for drawn in await asyncio.gather(drawing._pool.draw(raw), return_exceptions=True):
        if not isinstance(drawn, BaseException):
            pictures.append(Image.open(io.BytesIO(drawn.data)).convert("RGB"))
    for picture in pictures:
        colors = picture.getcolors(1 << 24)
        assert colors is not None and SECRET not in [color for _, color in colors]


async def test_the_colour_of_a_file_would_be_seen(drawing: LocalRenderer) -> None:
    """What the test above looks for is there when it is allowed to be."""
    html = document(f"<div style='width:900px;height:900px;background:rgb{SECRET}'></div>")
    colors = pixels(await draw(drawing, html)).getcolors(1 << 24)
    assert colors is not None and SECRET in [color for _, color in colors]
