"""The exact messages that code2world and gworld are sent, for every canonical action.

Golden files hold every text and the order of the parts. A picture stands in them as its size
and the box of the pixels that the cue changed, which the reader can check with a ruler; what
these pixels look like is tested in `test_cue`.
"""

import base64
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from services.worldmodel.backends.base import Scene
from services.worldmodel.backends.code2world import Code2World, Code2WorldOptions
from services.worldmodel.backends.gworld import GWorld, GWorldOptions
from services.worldmodel.engine import Endpoint, Engine
from wmkit.domain.actions import (
    ACTIONS,
    TERMINAL,
    Action,
    Answer,
    Back,
    DoubleTap,
    Enter,
    Finish,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.dialects import Unsupported
from wmkit.domain.errors import InvalidAction, InvalidRequest
from wmkit.domain.screen import Point

GOLDEN = Path(__file__).parents[2] / "golden" / "worldmodel"
GOAL = "Turn on Wi-Fi."
P, Q = Point(0.25, 0.75), Point(0.5, 0.5)
CASES: dict[str, Action] = {
    "tap": Tap(P),
    "double_tap": DoubleTap(P),
    "long_press": LongPress(P, 800),
    "swipe": Swipe(P, Q),
    "scroll_down": Scroll("down"),
    "scroll_left_at": Scroll("left", P),
    "type": Type('it\'s "ü"\n🙂'),
    "type_at_clear_submit": Type("milk", P, submit=True, clear=True),
    "key": Key("volume_up"),
    "enter": Enter(),
    "back": Back(),
    "home": Home(),
    "recents": Recents(),
    "open_app": OpenApp("Clock"),
    "wait": Wait(),
    "wait_ms": Wait(1500),
}


def engine() -> Engine:
    return Engine(Endpoint("http://127.0.0.1:1/v1", "m"))


def screen(size: tuple[int, int] = (1080, 2400)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "white").save(out, "PNG")
    return out.getvalue()


SCENE = Scene(screen(), GOAL)
SMALL = Scene(screen((108, 240)), GOAL)


def picture(part: Any) -> Image.Image:
    head, _, data = part["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


def as_text(messages: Sequence[Any]) -> str:
    lines = []
    for message in messages:
        lines.append(f"=== {message['role']}")
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            if part["type"] == "text":
                lines.append(part["text"])
                continue
            shown = picture(part)
            white = Image.new("RGB", shown.size, "white")
            box = ImageChops.difference(shown, white).getbbox()
            lines.append(f"[picture {shown.width}x{shown.height}, cue in {box}]")
    return "\n".join(lines) + "\n"


def compare(name: str, messages: Sequence[Any]) -> None:
    """To accept a deliberate change: WMR1_WRITE_GOLDEN=1 pytest tests/unit/learned."""
    path, text = GOLDEN / f"{name}.txt", as_text(messages)
    if os.environ.get("WMR1_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_action_that_can_be_stepped_is_a_case() -> None:
    stepped = {name for name, cls in ACTIONS.items() if cls not in TERMINAL}
    assert {action.name for action in CASES.values()} == stepped


@pytest.mark.parametrize("name", CASES)
async def test_code2world_is_sent_exactly_this(name: str) -> None:
    model = Code2World(engine())
    compare(f"code2world/{name}", model.messages(model.snap(CASES[name]), SCENE))


@pytest.mark.parametrize("name", CASES)
async def test_the_other_action_data_is_exactly_this(name: str) -> None:
    model = Code2World(engine(), Code2WorldOptions(action_data="mobile_use"))
    (_, user) = model.messages(model.snap(CASES[name]), SMALL)
    (data,) = [line for line in user["content"][1]["text"].splitlines() if "Action Data" in line]
    path = GOLDEN / "code2world" / "mobile_use.jsonl"
    known = (
        dict(json.loads(line) for line in path.read_text().splitlines()) if path.exists() else {}
    )
    if os.environ.get("WMR1_WRITE_GOLDEN"):
        known[name] = data.strip()
        lines = [json.dumps(entry, ensure_ascii=False) for entry in known.items()]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert data.strip() == known[name]


@pytest.mark.parametrize("name", ["tap", "scroll_down", "scroll_left_at", "type", "open_app"])
async def test_gworld_is_sent_exactly_this(name: str) -> None:
    model = GWorld(engine())
    compare(f"gworld/{name}", model.messages(model.snap(CASES[name]), SCENE))


@pytest.mark.parametrize(
    "name", sorted(set(CASES) - {"tap", "scroll_down", "scroll_left_at", "type", "open_app"})
)
async def test_gworld_has_no_word_for_the_others(name: str) -> None:
    model = GWorld(engine())
    with pytest.raises(Unsupported, match="gworld has no words for"):
        model.messages(model.snap(CASES[name]), SMALL)


@pytest.mark.parametrize("action", [Answer("x"), Finish()])
async def test_what_ends_an_episode_is_never_sent(action: Action) -> None:
    for model in (Code2World(engine()), GWorld(engine())):
        with pytest.raises(InvalidAction):
            model.messages(action, SMALL)


async def test_the_card_s_key_of_the_action_s_name() -> None:
    model = GWorld(engine(), GWorldOptions(action_key="action_type"))
    (user,) = model.messages(Tap(P), SMALL)
    assert 'Action: {"action_type": "TAP", "coordinates": [250, 750]}' in user["content"][1]["text"]


async def test_without_the_goal_the_model_gets_a_neutral_intent() -> None:
    shown = Code2World(engine())
    hidden = Code2World(engine(), Code2WorldOptions(include_goal=False))
    texts = [
        model.messages(Tap(P), scene)[1]["content"][1]["text"]
        for model, scene in ((shown, SMALL), (hidden, SMALL), (shown, Scene(SMALL.picture)))
    ]
    assert f"User Intent: {GOAL}" in texts[0]
    assert GOAL not in texts[1]
    assert texts[1] == texts[2]
    assert (shown.reads_goal, hidden.reads_goal) == (True, False)


async def test_a_picture_beyond_gworld_s_limits_is_resized_and_others_are_not() -> None:
    # 1440 x 3120 = 4492800 > 4233600: beta = 1.0301..., 1397.8 / 32 -> 43, 3028.6 / 32 -> 94.
    (user,) = GWorld(engine()).messages(Tap(P), Scene(screen((1440, 3120))))
    assert picture(user["content"][0]).size == (43 * 32, 94 * 32)
    (_, user) = Code2World(engine()).messages(Tap(P), Scene(screen((1440, 3120))))
    assert picture(user["content"][0]).size == (1440, 3120)
    # The cue and the data are pixels of that picture.
    assert '"x": 360, "y": 2340' in user["content"][1]["text"]


async def test_a_prompt_file_takes_the_card_s_own_text(tmp_path: Path) -> None:
    file = tmp_path / "card.toml"
    file.write_text(
        "system = 'Card { color: red } {intent}'\nuser = '<image>{description}|{action_data}'\n"
    )
    model = Code2World(engine(), Code2WorldOptions(prompt_file=file))
    system, user = model.messages(OpenApp("{description}"), SMALL)
    assert system["content"] == f"Card {{ color: red }} {GOAL}"
    assert user["content"][1]["text"] == (
        '<image>Open the app: {description}.|{"action_type": "open_app", '
        '"app_name": "{description}"}'
    )
    assert model.revision != Code2World(engine()).revision


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("user = 'no placeholder'", "never says {intent}"),
        ("system = 'only'", "has the text 'user'"),
        ("user = '{intent}{description}{action_data}'\nusr = ''", "nothing else"),
        ("user = ", "cannot be read"),
        (None, "cannot be read"),
    ],
)
async def test_a_prompt_file_that_cannot_be_used_is_refused(
    tmp_path: Path, content: str | None, complaint: str
) -> None:
    file = tmp_path / "p.toml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidRequest, match="WMR1_CODE2WORLD_PROMPT_FILE") as caught:
        Code2World(engine(), Code2WorldOptions(prompt_file=file))
    assert complaint in caught.value.message
