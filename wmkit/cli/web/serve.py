"""The page's server: FastAPI on loopback until Ctrl-C.

Other pages of the same browser cannot use it: it answers to loopback names only and takes
nothing but JSON.
"""

import socket
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wmkit.cli.console import out
from wmkit.cli.private import private_stack
from wmkit.cli.web.session import WebSession
from wmkit.clients.sync import connect
from wmkit.domain.errors import WMError

if TYPE_CHECKING:
    from fastapi import FastAPI

LOOPBACK = "127.0.0.1"
_PAGE = Path(__file__).with_name("page.html")


def play_web(template: str, seed: int, worldmodel: str, port: int) -> None:
    """Serve the page until Ctrl-C. Raises UnknownTask, StackFailed, WMError for a taken port."""
    try:
        import uvicorn
    except ImportError:
        raise WMError('the page needs two more packages: pip install "wmr1[gateway]"') from None
    listener = _listen(port)
    services = ("renderer", "worldmodel")
    private = private_stack("play", services, keep=False) if not worldmodel else None
    with private or nullcontext() as stack, listener:
        address = stack.address("worldmodel") if stack else worldmodel
        with connect(address) as world:
            app = make_app(WebSession(world.create_state(template, seed)))
            host, taken = listener.getsockname()
            out.print(f"[bold]http://{host}:{taken}[/bold]  (Ctrl-C ends it)")
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
            server.run(sockets=[listener])


def make_app(session: WebSession) -> "FastAPI":
    """The page, its screens and three calls around one session."""
    from fastapi import Body, FastAPI, HTTPException, Request
    from fastapi.responses import HTMLResponse, JSONResponse, Response
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    app = FastAPI(title="wmr1 play", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"])

    @app.exception_handler(WMError)
    async def _mistake(_: Request, error: WMError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=400)

    @app.get("/", response_class=HTMLResponse)
    def page() -> str:
        return _PAGE.read_text(encoding="utf-8")

    @app.get("/view")
    def view() -> dict[str, Any]:
        return session.view()

    @app.get("/screen/{number}.png")
    def screen(number: int) -> Response:
        if not 0 <= number < len(session.pictures):
            raise HTTPException(404, f"there is no screen {number}")
        return Response(session.pictures[number].screenshot.data, media_type="image/png")

    @app.post("/act")
    def act(
        action: dict[str, Any] = Body(...),  # noqa: B008 - how FastAPI declares a body
        imagine: bool = Body(False),
    ) -> dict[str, Any]:
        return session.act(action, imagine=imagine)

    @app.post("/undo")
    def undo(_: dict[str, Any] = Body(...)) -> dict[str, Any]:  # noqa: B008
        return session.undo()

    return app


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError:
        listener.close()
        raise WMError(f"port {port} is taken; --port 0 takes a free one") from None
    return listener
