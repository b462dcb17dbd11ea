"""A trajectory as a filmstrip: one HTML page with its pictures inside, for a browser.

Everything the agent or a world model wrote is escaped: it is shown, never run. The trainer's
report has a richer one for chosen episodes; this one needs no service and no run.
"""

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

from wmkit.domain.episode import Imagined, Step, Trajectory
from wmkit.trajectories.file import Bundle

_CSS = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 24px; color: #1a1c20; background: #fafafa }
.film { display: flex; gap: 16px; overflow-x: auto; align-items: flex-start }
figure { margin: 0; flex: 0 0 220px } img { width: 100%; border-radius: 8px; background: #ddd }
.frame { position: relative } .dot { position: absolute; width: 18px; height: 18px;
  margin: -9px 0 0 -9px; border: 3px solid #d33; border-radius: 50% }
.imagined { margin: 8px 0 0 24px; opacity: .85 } .imagined figure { flex-basis: 140px }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px; color: #444 }
b.success { color: #18794e } b.failure { color: #c62a2f } b.unsure { color: #946800 }
"""


def film(bundle: Bundle) -> str:
    """The page. Pictures that the bundle lacks are left blank."""
    played = bundle.trajectory
    frames = [_frame(step, bundle.blobs) for step in played.steps]
    frames.append(_figure(played.final_screenshot, bundle.blobs, None, "the end"))
    verdict = played.judgement
    facts = (
        f"{played.job.task}, {played.backend}, L = {played.length}, n = {played.calls}, "
        f"ended by {played.ending}"
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{escape(played.job.job_id)}</title><style>{_CSS}</style>"
        f"<h1>{escape(played.task.goal)}</h1>"
        f'<p><b class="{verdict.verdict}">{verdict.verdict}</b>: {escape(verdict.reason)}</p>'
        f'<p>{escape(facts)}</p><div class="film">{"".join(frames)}</div></html>\n'
    )


def lines(trajectory: Trajectory) -> list[str]:
    """The same for a terminal: a head, and one line per step and imagined call."""
    verdict = trajectory.judgement
    told = [
        f"{trajectory.job.job_id}: {trajectory.task.goal}",
        f"{verdict.verdict}: {verdict.reason} (L = {trajectory.length}, n = {trajectory.calls}, "
        f"ended by {trajectory.ending})",
    ]
    for step in trajectory.steps:
        for call in step.imagined:
            told.append(f"     imagined {words(call.action)}: {_answer(call)}")
        done = words(step.action) if step.action else f"unreadable: {step.parse_error}"
        told.append(f"{step.index:3}  {done}" + (f": {step.outcome}" if step.outcome else ""))
    return told


def words(action: Mapping[str, Any] | None) -> str:
    """An action dict as `tap(point=[0.50, 0.25])`."""
    if action is None:
        return "?"
    given = ", ".join(f"{k}={_value(v)}" for k, v in action.items() if k != "action")
    return f"{action['action']}({given})"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(f"{x:.2f}" for x in value) + "]"
    return repr(value)


def _answer(call: Imagined) -> str:
    return str(call.outcome) if call.answered else call.note or str(call.reason)


def _frame(step: Step, blobs: Mapping[str, bytes]) -> str:
    done = words(step.action) if step.action else f"unreadable: {step.parse_error}"
    branches = "".join(
        _figure(call.screenshot, blobs, None, f"imagined {words(call.action)}: {_answer(call)}")
        for call in step.imagined
    )
    dreams = f'<div class="imagined">{branches}</div>' if branches else ""
    strip = _figure(step.screenshot, blobs, step.action, f"{step.index}. {done}")
    return f"<div>{strip}{dreams}<pre>{escape(step.text)}</pre></div>"


def _figure(
    digest: str, blobs: Mapping[str, bytes], action: Mapping[str, Any] | None, caption: str
) -> str:
    data = blobs.get(digest, b"")
    kind = "jpeg" if data.startswith(b"\xff\xd8") else "webp" if data[8:12] == b"WEBP" else "png"
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}" if data else ""
    point = (action or {}).get("point")
    dot = ""
    if point:
        dot = f'<span class="dot" style="left:{point[0]:.2%};top:{point[1]:.2%}"></span>'
    return (
        f'<figure><div class="frame"><img alt="" src="{source}">{dot}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
