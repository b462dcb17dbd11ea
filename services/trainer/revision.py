"""Which code this is: package version, and the commit where it runs from a checkout."""

from pathlib import Path

import wmkit

ROOT = Path(wmkit.__file__).parent.parent


def code_revision(root: Path = ROOT) -> str:
    """For example "0.1.0 (3f2c9d1)". Read from .git directly: no process is started."""
    commit = _head(root / ".git")
    return f"{wmkit.__version__} ({commit[:10]})" if commit else wmkit.__version__


def _head(git: Path) -> str:
    try:
        head = (git / "HEAD").read_text("ascii").strip()
        if not head.startswith("ref: "):
            return head
        ref = head.removeprefix("ref: ")
        if (git / ref).is_file():
            return (git / ref).read_text("ascii").strip()
        packed = (git / "packed-refs").read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next((line.split()[0] for line in packed if line.endswith(f" {ref}")), "")
