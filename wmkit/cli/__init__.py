"""The command `wmr1`: local stacks, training, evaluation, tasks by hand, a doctor.

Importing this package is cheap; every command loads what it needs when it runs.
"""

import sys


def main() -> None:
    """Run the command line. A mistake of the user is one sentence on stderr and exit code 1."""
    from wmkit.cli.app import app
    from wmkit.domain.errors import WMError

    try:
        app(prog_name="wmr1")
    except WMError as error:
        print(f"wmr1: {error.message}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        raise SystemExit(141) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"wmr1: {where}{error.strerror or error}", file=sys.stderr)
        raise SystemExit(1) from None
