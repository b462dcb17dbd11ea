"""Builds engines, learned backends and the model judge from settings. Needs an event loop."""

from services.worldmodel.backends.code2world import Code2World, Code2WorldOptions
from services.worldmodel.backends.gworld import GWorld, GWorldOptions
from services.worldmodel.engine import Endpoint, Engine, Limits, ModelClient
from services.worldmodel.judge import ModelJudge
from services.worldmodel.learned.pages import LearnedPages
from services.worldmodel.learned.scenes import Scenes
from services.worldmodel.learned.settings import LearnedSettings
from wmkit.domain.errors import InvalidRequest


def code2world(settings: LearnedSettings) -> Code2World:
    """Raises InvalidRequest for settings that name no server or a prompt that is none."""
    options = Code2WorldOptions(
        prompt_file=settings.code2world_prompt_file,
        action_data=settings.code2world_action_data,
        include_goal=settings.code2world_include_goal,
        max_tokens=settings.code2world_max_tokens,
        model_revision=settings.code2world_model_revision,
    )
    return Code2World(
        _model(
            "code2world",
            settings.code2world_checkpoint,
            settings.code2world_url,
            settings.code2world_model,
            settings.code2world_key,
            settings,
        ),
        options,
        Scenes.open(settings.learned_scenes),
    )


def gworld(settings: LearnedSettings) -> GWorld:
    """Raises InvalidRequest for settings that name no server or a prompt that is none."""
    options = GWorldOptions(
        prompt_file=settings.gworld_prompt_file,
        action_key=settings.gworld_action_key,
        max_tokens=settings.gworld_max_tokens,
        model_revision=settings.gworld_model_revision,
    )
    return GWorld(
        _model(
            "gworld",
            settings.gworld_checkpoint,
            settings.gworld_url,
            settings.gworld_model,
            settings.gworld_key,
            settings,
        ),
        options,
        Scenes.open(settings.learned_scenes),
    )


def model_judge(settings: LearnedSettings, backends: list[LearnedPages]) -> ModelJudge | None:
    """The judge that the settings name, if any.

    Raises InvalidRequest for one that is also a world model of this server.
    """
    if not settings.judge_url:
        return None
    endpoint = _endpoint("judge", settings.judge_url, settings.judge_model, settings.judge_key)
    return ModelJudge(
        Engine(endpoint, _limits(settings)),
        votes=settings.judge_votes,
        worlds=[backend.endpoint for backend in backends],
        prompt_file=settings.judge_prompt_file,
    )


def _model(
    who: str, checkpoint: str, url: str, model: str, key: str, settings: LearnedSettings
) -> ModelClient:
    """A checkpoint in this process where one is named, else a server."""
    if not checkpoint:
        return Engine(_endpoint(who, url, model, key), _limits(settings))
    name = f"WMR1_{who.upper()}"
    if url:
        raise InvalidRequest(
            f"{name}_CHECKPOINT and {name}_URL are both set; choose one", field=f"{who}_url"
        )
    try:
        from services.worldmodel.engine.decoding import Decoder
        from services.worldmodel.engine.in_process import InProcess
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"{name}_CHECKPOINT needs {error.name}: pip install 'wmr1[worldmodel-local]'",
            field=f"{who}_checkpoint",
        ) from None
    decoder = Decoder(
        checkpoint,
        device=settings.transformers_device,
        dtype=settings.transformers_dtype,
        max_pixels=settings.transformers_max_pixels,
    )
    return InProcess(decoder, timeout_s=settings.engine_timeout_s, waiting=settings.engine_waiting)


def _endpoint(who: str, url: str, model: str, key: str) -> Endpoint:
    name = f"WMR1_{who.upper()}"
    if not url:
        raise InvalidRequest(f"{who} needs a model server; set {name}_URL", field=f"{who}_url")
    if not model:
        raise InvalidRequest(f"{who} needs a model's name; set {name}_MODEL", f"{who}_model")
    return Endpoint(url, model, key)


def _limits(settings: LearnedSettings) -> Limits:
    return Limits(
        timeout_s=settings.engine_timeout_s,
        idle_s=settings.engine_idle_s,
        in_flight=settings.engine_in_flight,
        waiting=settings.engine_waiting,
        attempts=settings.engine_attempts,
        breaker_failures=settings.engine_breaker_failures,
        breaker_rest_s=settings.engine_breaker_rest_s,
    )
