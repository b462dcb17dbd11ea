"""Canonical actions on the wire. Field names agree, so one rule serves all of them."""

from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any

from wmr1.common.v1 import common_pb2 as pb

from wmkit.convert.enums import REVEAL
from wmkit.domain.actions import ACTIONS, TERMINAL, Action, from_dict
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import Point

_BODIES = {field.name: field.message_type for field in pb.Action.DESCRIPTOR.oneofs[0].fields}
_REQUIRED = {
    name: [f.name for f in fields(cls) if f.default is MISSING] for name, cls in ACTIONS.items()
}


def action_to_pb(action: Action) -> pb.Action:
    """Raises InvalidAction for answer and finish, and for what a message cannot hold."""
    if isinstance(action, TERMINAL):
        raise InvalidAction(
            f"{action.name} ends an episode; it is no action of the world", field="action"
        )
    message = pb.Action()
    body = getattr(message, action.name)
    body.SetInParent()
    for field in fields(action):
        value = getattr(action, field.name)
        if value is None:
            continue
        if isinstance(value, Point):
            getattr(body, field.name).x = value.x
            getattr(body, field.name).y = value.y
            continue
        try:
            setattr(body, field.name, REVEAL.to_pb(value) if field.name == "reveal" else value)
        except ValueError as error:
            # Text with lone surrogates (half an emoji), a number beyond 32 bits.
            path = f"action.{action.name}.{field.name}"
            raise InvalidAction(f"{path} cannot be sent: {error}", path) from None
    return message


def action_from_pb(message: pb.Action, field: str = "action") -> Action:
    """`field` is the message's own path, the beginning of the path in an error.

    Raises InvalidAction for no or an unknown kind, a missing argument, an unknown
    direction, a negative time or a point outside the screen.
    """
    return _read(message.SerializeToString(deterministic=True), field)


@lru_cache(maxsize=16_384)
def _read(data: bytes, field: str) -> Action:
    """Actions repeat, among the members of a group above all; errors are not remembered."""
    message = pb.Action.FromString(data)
    kind = message.WhichOneof("kind")
    if kind is None:
        raise InvalidAction(f"{field} is not set or unknown; known: {', '.join(_BODIES)}", field)
    body = getattr(message, kind)
    path = f"{field}.{kind}"
    args: dict[str, Any] = {"action": kind}
    for described in _BODIES[kind].fields:
        name = described.name
        if described.has_presence and not body.HasField(name):
            continue
        value = getattr(body, name)
        if name in ("point", "to"):
            value = (value.x, value.y)
        elif name == "reveal":
            value = REVEAL.from_pb(value, f"{path}.{name}", InvalidAction)
        args[name] = value
    for name in _REQUIRED[kind]:
        if name not in args:
            raise InvalidAction(f"{path}.{name} is not set", f"{path}.{name}")
    try:
        return from_dict(args)
    except InvalidAction as error:
        raise InvalidAction(error.message, f"{path}.{error.field}") from None
