"""What the renderer service reads from its environment."""

from typing import Literal

from pydantic import Field

from wmkit.settings import DEFAULT_PORTS, ServiceSettings


class RendererSettings(ServiceSettings):
    """Settings of the renderer service."""

    port: int = Field(DEFAULT_PORTS["renderer"], ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    browser: str = ""
    """Path or name of a Chromium; empty looks on the PATH, then for playwright's own."""
    browser_sandbox: Literal["auto", "on", "off"] = "auto"
    """Chromium's own sandbox: auto is on except for root and where the kernel forbids it."""
    browser_jobs: int = Field(20_000, ge=1)
    """Pages drawn by one browser process before it is replaced."""
    browser_memory_mb: int = Field(3_000, ge=200)
    """Resident memory of one browser, children included, at which it is replaced."""
    pages: int = Field(0, ge=0, le=64)
    """Pages drawn at once; 0 is the number of cores plus one, because half of a capture is
    waiting for the browser's next frame."""
    page_jobs: int = Field(2_000, ge=1)
    """Jobs for which a warm page is kept; 1 gives every job a context of its own."""
    page_memory_mb: int = Field(1_000, ge=100)
    """Resident memory of a page's process at which its job is FAILED(OVERSIZED)."""
    page_timeout_s: float = Field(10.0, gt=0)
    """Time to draw one page where the request names none. A page takes 0.05 s; the rest is
    patience with a machine that is busy, so that innocent pages are not called hung."""
    page_timeout_max_s: float = Field(30.0, gt=0)
    """Most that a request may name."""
    pages_waiting: int = Field(1_024, ge=1)
    """Requests that may wait for a page; more are refused with RESOURCE_EXHAUSTED."""
    html_max_bytes: int = Field(4 << 20, ge=1)
    """Longer documents are FAILED(OVERSIZED)."""
    html_max_tags: int = Field(10_000, ge=1)
    """Documents with more tags (opening and closing) are FAILED(OVERSIZED)."""
    picture_max_px: int = Field(24_000_000, ge=1)
    """Largest picture, in output pixels, that may be asked for."""
    picture_cache_mb: int = Field(64, ge=0)
    """Memory for pictures that were drawn already."""
    batch_in_flight: int = Field(256, ge=1)
    """Pages of one BatchRender call that are worked on at once."""
