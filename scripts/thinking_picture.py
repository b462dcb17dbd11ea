"""Draws docs/thinking.png: one real step of an episode, and what was imagined before it.

    python scripts/thinking_picture.py [docs/thinking.png]

Needs Chromium on the PATH. The screens are the scripted phone's, reached by real taps.
"""

import base64
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

from services.worldmodel.phone import Element, Phone, boot, elements, html, step
from wmkit.domain.actions import Tap

SEED = 23
"""Of a phone whose Wi-Fi is off."""
SCREEN: ViewportSize = {"width": 1080, "height": 2400}
PICTURE: ViewportSize = {"width": 1340, "height": 560}
PICTURE_HTML = """<!DOCTYPE html><meta charset="utf-8"><style>
  body { margin: 0; background: #fff; font: 18px Roboto, sans-serif; color: #1b2027; }
  div { position: absolute; box-sizing: border-box; }
  img { display: block; width: 100%%; border-radius: 14px; }
  .phone { width: 200px; border: 5px solid #3b4252; border-radius: 22px; }
  .imagined { width: 150px; border: 4px dashed #a56cc1; border-radius: 20px; }
  .finger { width: 26px; height: 26px; margin: -13px; border-radius: 50%%;
    background: #e5393580; border: 2px solid #e53935; }
  .note { padding: 12px 16px; border-radius: 12px; line-height: 25px; }
  .thought { background: #f3effa; border: 2px solid #c3aedb; }
  .act { background: #e6f2ec; border: 2px solid #8cc7a6; }
  .label { text-align: center; color: #4b5563; }
  .dream { color: #8e44ad; } .deed { color: #1e7d4b; }
  code { font: bold 17px "Roboto Mono", monospace; }
  svg { position: absolute; left: 0; top: 0; }
</style>
<svg width="1340" height="560" fill="none" stroke-width="5">
  <defs>
    <marker id="d" orient="auto" markerWidth="5" markerHeight="5" refX="4" refY="2.5"><path
      d="M0 0 5 2.5 0 5z" fill="#8e44ad"/></marker>
    <marker id="r" orient="auto" markerWidth="5" markerHeight="5" refX="4" refY="2.5"><path
      d="M0 0 5 2.5 0 5z" fill="#1e7d4b"/></marker>
  </defs>
  <path d="M250 205H425" stroke="#8e44ad" stroke-dasharray="12 9" marker-end="url(#d)"/>
  <path d="M250 490H840" stroke="#1e7d4b" marker-end="url(#r)"/>
  <path d="M1056 300H1094" stroke="#1e7d4b" marker-end="url(#r)"/>
</svg>
<div style="left:40px;top:18px;font-size:24px"><b>Goal:</b> Turn on Wi-Fi.</div>
<div class="phone" style="left:40px;top:62px"><img src="%(first)s"></div>
<div class="finger" style="left:%(tap_x)spx;top:%(tap_y)spx"></div>
<div class="note thought" style="left:262px;top:100px;width:150px"><code class="dream"
  >&lt;call_wm&gt;</code><br>tap Privacy</div>
<div class="imagined" style="left:437px;top:30px"><img src="%(imagined)s"></div>
<div class="label dream" style="left:407px;top:364px;width:210px">imagined: nothing is done</div>
<div class="note thought" style="left:612px;top:100px;width:222px">No Wi-Fi there.<br>It must be
  under<br>Network. <code class="dream">&lt;/think&gt;</code></div>
<div class="note act" style="left:262px;top:424px;width:300px"><b>Action:</b> <code class="deed"
  >tap(Network)</code></div>
<div class="phone" style="left:848px;top:62px"><img src="%(second)s"></div>
<div class="finger" style="left:%(then_x)spx;top:%(then_y)spx"></div>
<div class="phone" style="left:1102px;top:62px"><img src="%(last)s"></div>
<div class="label" style="left:40px;top:506px;width:200px">real screen</div>
<div class="label" style="left:848px;top:506px;width:200px">next screen</div>
<div class="label" style="left:1102px;top:506px;width:200px">done: reward</div>
"""
INSIDE_PX = 190
"""Width of a screen within its frame."""


def named(phone: Phone, text: str) -> Element:
    """The row that bears this text."""
    return next(e for e in elements(phone) if e.clickable and e.text.startswith(text))


def tapped(phone: Phone, text: str) -> Phone:
    return step(phone, Tap(named(phone, text).at))


def finger(phone: Phone, text: str, left: int, top: int) -> tuple[float, float]:
    """Where the tap on that row lies in the picture, for a phone drawn at (left, top)."""
    x, y, width, height = named(phone, text).box
    scale = INSIDE_PX / SCREEN["width"]
    return left + 5 + (x + width * 0.6) * scale, top + 5 + (y + height / 2) * scale


def main(path: Path) -> None:
    binary = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if binary is None:
        raise SystemExit("no Chromium on the PATH")
    first = tapped(boot(SEED), "Settings")
    imagined, second = tapped(first, "Privacy"), tapped(first, "Network")
    last = tapped(second, "Wi-Fi")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        page = browser.new_page()

        def seen(phone: Phone) -> str:
            return uri(shot(page, html(phone), SCREEN))

        (tap_x, tap_y), (then_x, then_y) = (
            finger(first, "Network", 40, 62),
            finger(second, "Wi-Fi", 848, 62),
        )
        parts = {"first": seen(first), "imagined": seen(imagined), "second": seen(second)}
        parts |= {"last": seen(last)}
        places = {"tap_x": tap_x, "tap_y": tap_y, "then_x": then_x, "then_y": then_y}
        path.write_bytes(shot(page, PICTURE_HTML % (parts | places), PICTURE))
        browser.close()


def shot(page: Page, document: str, size: ViewportSize) -> bytes:
    """A PNG of that size."""
    page.set_viewport_size(size)
    page.set_content(document)
    return page.screenshot()


def uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/thinking.png"))
