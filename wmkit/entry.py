"""The front door of `python -m services.<name>`: help, settings, logs, one-sentence errors.

A service's `__main__` passes a `run` that imports the service's own modules, so that
`--help` answers before anything heavy is loaded.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from wmkit.domain.errors import WMError
from wmkit.settings import ServiceSettings, describe, load

S = TypeVar("S", bound=ServiceSettings)


def main(
    name: str,
    about: str,
    settings: type[S],
    run: Callable[[S], Coroutine[Any, Any, None]],
) -> None:
    """Run a service until it is told to stop.

    `about` is the service's docstring, `run` the coroutine function that serves.
    Exits with 0 after a clean stop and 2 for a mistake of whoever starts it.
    """
    if any(arg in ("-h", "--help") for arg in sys.argv[1:]):
        print(f"usage: python -m services.{name}\n\n{about.strip()}\n\nEnvironment:")
        print(describe(settings))
        return
    if sys.argv[1:]:
        print(
            f"services.{name} takes no arguments; it is configured by environment variables, "
            "see --help",
            file=sys.stderr,
        )
        raise SystemExit(2)
    values = load(settings)
    from wmkit import logs

    logs.configure(name, values.log_level)
    try:
        asyncio.run(run(values))
    except WMError as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
