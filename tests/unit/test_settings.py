"""Settings come from WMR1_* variables; a mistake is one sentence and exit code 2."""

import pytest

from wmkit.settings import DEFAULT_PORTS, ServiceSettings, describe, load


class Toy(ServiceSettings):
    port: int = DEFAULT_PORTS["renderer"]
    """Port to listen on."""
    pages: int = 2
    """Pages kept warm."""


def test_the_environment_overrides_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WMR1_PAGES", "7")
    monkeypatch.setenv("WMR1_REDIS_URL", "redis://r:1/2")
    settings = load(Toy)
    assert (settings.pages, settings.redis_url, settings.port) == (7, "redis://r:1/2", 50052)


def test_a_bad_value_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WMR1_PORT", "fifty")
    with pytest.raises(SystemExit) as caught:
        load(Toy)
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("WMR1_PORT=fifty: ")


def test_help_names_every_variable_with_its_meaning() -> None:
    text = describe(Toy)
    assert "WMR1_PAGES=2\n      Pages kept warm." in text
    for name, field in Toy.model_fields.items():
        assert f"WMR1_{name.upper()}=" in text
        assert field.description, name


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("worldmodel", False),
    ],
)
def test_loopback_is_told_from_the_network(host: str, loopback: bool) -> None:
    assert ServiceSettings(host=host).loopback is loopback


def test_the_token_does_not_show_in_logs() -> None:
    assert "s3cret" not in repr(ServiceSettings(token="s3cret"))
