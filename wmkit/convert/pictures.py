"""Screens, pictures, elements and renderings on the wire."""

from collections.abc import Iterable
from typing import Any

from wmr1.common.v1 import common_pb2 as pb
from wmr1.renderer.v1 import renderer_pb2 as renderer

from wmkit.convert.enums import DELIVERY, FAILURE, FORMAT, ORIENTATION
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.screen import Screen
from wmkit.domain.transition import Element, FailureReason, Image, ImageRequest, Rendering


def screen_to_pb(screen: Screen) -> pb.Screen:
    return pb.Screen(
        width_px=screen.width_px,
        height_px=screen.height_px,
        scale=screen.scale,
        orientation=ORIENTATION.to_pb(screen.orientation),
    )


def screen_from_pb(message: pb.Screen, field: str = "screen") -> Screen:
    """`orientation` follows from the size and is not read; scale 0 means 1."""
    if message.width_px <= 0 or message.height_px <= 0:
        raise InvalidRequest(
            f"{field} must have a size, not {message.width_px}x{message.height_px}", field
        )
    return Screen(message.width_px, message.height_px, message.scale or 1.0)


def image_request_to_pb(request: ImageRequest | None) -> pb.ImageRequest:
    """None becomes an empty message: no picture is made."""
    if request is None:
        return pb.ImageRequest()
    return pb.ImageRequest(
        delivery=DELIVERY.to_pb(request.deliver),
        format=FORMAT.to_pb(request.format),
        scale=request.scale,
        quality=request.quality,
        with_elements=request.with_elements,
    )


def image_request_from_pb(message: pb.ImageRequest, field: str = "image") -> ImageRequest | None:
    """None when no delivery is named: no picture is wanted.

    Raises InvalidRequest for a scale outside (0, 4] or a quality outside 1-100.
    """
    if not message.delivery:
        return None
    scale = message.scale or 1.0
    if not 0 < scale <= 4:
        raise InvalidRequest(f"{field}.scale must be in (0, 4], is {scale:g}", f"{field}.scale")
    quality = message.quality or 90
    if not 1 <= quality <= 100:
        raise InvalidRequest(f"{field}.quality must be 1-100, is {quality}", f"{field}.quality")
    return ImageRequest(
        deliver=DELIVERY.from_pb(message.delivery, f"{field}.delivery"),
        format=FORMAT.from_pb(message.format, f"{field}.format") if message.format else "png",
        scale=scale,
        quality=quality,
        with_elements=message.with_elements,
    )


def image_to_pb(image: Image) -> pb.Image:
    return pb.Image(
        digest=image.digest,
        data=image.data,
        format=FORMAT.to_pb(image.format),
        width_px=image.width_px,
        height_px=image.height_px,
    )


def image_from_pb(message: pb.Image, field: str = "image") -> Image:
    return Image(
        digest=message.digest,
        width_px=message.width_px,
        height_px=message.height_px,
        format=FORMAT.from_pb(message.format, f"{field}.format"),
        data=message.data,
    )


def element_to_pb(element: Element) -> pb.Element:
    message = pb.Element(
        id=element.id,
        role=element.role,
        text=element.text,
        x_px=element.x_px,
        y_px=element.y_px,
        width_px=element.width_px,
        height_px=element.height_px,
        clickable=element.clickable,
        focused=element.focused,
        enabled=element.enabled,
    )
    if element.checked is not None:
        message.checked = element.checked
    return message


def element_from_pb(message: pb.Element) -> Element:
    return Element(
        id=message.id,
        role=message.role,
        text=message.text,
        x_px=message.x_px,
        y_px=message.y_px,
        width_px=message.width_px,
        height_px=message.height_px,
        clickable=message.clickable,
        checked=message.checked if message.HasField("checked") else None,
        focused=message.focused,
        enabled=message.enabled,
    )


def elements_from_pb(messages: Iterable[pb.Element]) -> tuple[Element, ...]:
    return tuple(element_from_pb(message) for message in messages)


def reason_to_pb(reason: FailureReason | None) -> Any:
    return 0 if reason is None else FAILURE.to_pb(reason)


def reason_from_pb(number: int, field: str = "reason") -> FailureReason | None:
    """0 is None: nothing failed."""
    return FAILURE.from_pb(number, field) if number else None


def rendering_to_pb(rendering: Rendering) -> renderer.RenderResponse:
    failed = rendering.reason is not None
    message = renderer.RenderResponse(
        outcome=renderer.RENDER_OUTCOME_FAILED if failed else renderer.RENDER_OUTCOME_OK,
        reason=reason_to_pb(rendering.reason),
        elements=[element_to_pb(element) for element in rendering.elements],
        warnings=rendering.warnings,
        cached=rendering.cached,
        render_ms=round(rendering.render_ms),
        revision=rendering.revision,
    )
    if rendering.image is not None:
        message.image.CopyFrom(image_to_pb(rendering.image))
    return message


def rendering_from_pb(message: renderer.RenderResponse) -> Rendering:
    """Raises InvalidRequest when the outcome is unset, or FAILED without a reason."""
    match message.outcome:
        case renderer.RENDER_OUTCOME_OK:
            reason = None
        case renderer.RENDER_OUTCOME_FAILED:
            reason = FAILURE.from_pb(message.reason, "reason")
        case other:
            raise InvalidRequest(f"outcome is not set or unknown ({other})", "outcome")
    return Rendering(
        image=image_from_pb(message.image) if message.HasField("image") else None,
        reason=reason,
        elements=elements_from_pb(message.elements),
        warnings=tuple(message.warnings),
        cached=message.cached,
        render_ms=float(message.render_ms),
        revision=message.revision,
    )
