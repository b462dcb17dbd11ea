"""What gWorld is told: `{"action": "TAP", "coordinates": [500, 250]}`.

This is a dialect *towards a world model*: agents do not speak it. Coordinates are integers
from 0 to 1000, clamp(round(1000 * p)). The key of the action's name is `action` in the
evaluation code and `action_type` in the model card, hence a parameter. Scroll directions are
taken as revealing. There are only these four actions.
"""

from wmkit.domain.actions import Action, OpenApp, Scroll, Tap, Type
from wmkit.domain.dialects.arguments import REVEALS, Arguments
from wmkit.domain.dialects.grids import Grid, Scale
from wmkit.domain.dialects.objects import ObjectDialect, dump
from wmkit.domain.screen import View

_POINT = ("coordinates", "coordinate")


class GWorld(ObjectDialect):
    name = "gworld"
    names = ("tap", "set_text", "scroll", "launch_app")
    keys = frozenset((*_POINT, "text", "direction", "app_name"))

    def __init__(self, key: str = "action") -> None:
        self.key = key

    def grid(self, view: View) -> Grid:
        return Scale(1000)

    def read(self, args: Arguments) -> Action:
        match args.action:
            case "tap":
                return Tap(args.point(*_POINT))
            case "set_text":
                return Type(args.text("text"), args.optional_point(*_POINT))
            case "scroll":
                return Scroll(args.choice(REVEALS, "direction"), args.optional_point(*_POINT))
            case "launch_app":
                return OpenApp(args.text("app_name"))
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                fields: dict[str, object] = {"coordinates": grid.write(point)}
                return dump({self.key: "TAP", **fields})
            case Type(text, point, False, False):
                at = {} if point is None else {"coordinates": grid.write(point)}
                return dump({self.key: "SET_TEXT", **at, "text": text})
            case Scroll(reveal, point):
                at = {} if point is None else {"coordinates": grid.write(point)}
                return dump({self.key: "SCROLL", **at, "direction": reveal})
            case OpenApp(app):
                return dump({self.key: "LAUNCH_APP", "app_name": app})
        return None

    def describe(self, view: View | None = None) -> str:
        return (
            f'{{"{self.key}": "TAP", "coordinates": [x, y]}}\n'
            f'{{"{self.key}": "SET_TEXT", "coordinates": [x, y], "text": "..."}}\n'
            f'{{"{self.key}": "SCROLL", "direction": "down"}}\n'
            f'{{"{self.key}": "LAUNCH_APP", "app_name": "..."}}\n'
            "x and y run from 0 to 1000 on both axes."
        )
