"""docs/rollout.md names a test for every point where something may die; they exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "rollout.md").read_text().splitlines()
    if re.match(r"\| [①-⑦]? ?\|", line)
]


def test_every_point_has_a_test_by_that_name() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(ROWS) >= 17
    for row in ROWS:
        named = re.findall(r"`(test_\w+)(?:\[(\w+)\])?`", row)
        assert named, row
        for name, case in named:
            found = re.search(rf"((?:^@.*\n|^ .*\n|^\)\n)*)^(?:async )?def {name}\(", sources, re.M)
            assert found, name
            assert not case or f'"{case}"' in found[1], f"{name} has no case {case}"


def test_every_numbered_point_of_the_diagram_has_a_row() -> None:
    text = (ROOT / "docs" / "rollout.md").read_text()
    diagram = text.partition("```\n")[2].partition("```")[0]
    assert set(re.findall(r"[①-⑳]", diagram)) == set(
        re.findall(r"[①-⑳]", "".join(row[:4] for row in ROWS))
    )
