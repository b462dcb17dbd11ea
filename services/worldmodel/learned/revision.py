"""What names the revision of a learned backend: everything that decides about its answers.

The model's name as the server knows it, prompt, decoding and the code that draws cues, words
actions and reads answers. Which weights stand behind the name is the server's word: a setting
adds what the name leaves open.
"""

import json
from functools import cache
from pathlib import Path

from wmkit.blobs import digest


def revision(name: str, decides: dict[str, object]) -> str:
    """`name-` and 16 hex digits over `decides` (JSON data) and the code of learned backends."""
    words = json.dumps(decides, sort_keys=True, ensure_ascii=False)
    return f"{name}-{digest(f'{_code()} {words}'.encode())[:16]}"


@cache
def _code() -> str:
    here = Path(__file__).resolve().parent
    files = [*here.glob("*.py"), *(here.parent / "backends").glob("*.py")]
    own = [file for file in files if file.stem not in ("scripted", "replay", "__init__")]
    return digest(b"".join(digest(file.read_bytes()).encode() for file in sorted(own)))
