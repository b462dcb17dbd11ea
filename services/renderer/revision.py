"""Names what determines the bytes of a picture besides the request: renderer, browser, fonts."""

import asyncio

from wmkit.blobs import digest

# Raised with any change after which the same document may be drawn differently.
RENDERER = 2


async def revision(browser_version: str) -> str:
    """Such as `renderer1-chromium156.0.8078.114-fonts3f2a9c01`."""
    return f"renderer{RENDERER}-chromium{browser_version}-fonts{await _fonts()}"


async def _fonts() -> str:
    """A digest of the installed fonts and their versions; `unknown` without fontconfig."""
    try:
        process = await asyncio.create_subprocess_exec(
            "fc-list",
            "--format=%{file|basename} %{fontversion} %{style}\n",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return "unknown"
    listing, _ = await process.communicate()
    return digest(b"\n".join(sorted(listing.splitlines())))[:8]
