"""What docs/phone.md says about adding an app and a template is done here, word by word."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOC = (ROOT / "docs" / "phone.md").read_text()
SECTION = DOC.partition("## Adding an app or a template")[2].partition("\n## ")[0]

# Each block names the file that it belongs to in its first line.
FILE = re.compile(r"```python\n# (services/\S+\.py)\n(.*?)```", re.S)
LINE = re.compile(r"```diff\n# (services/\S+\.py)\n(.*?)```", re.S)

PLAY = """
from services.worldmodel.phone import boot, dumps, elements, html, loads, step
from services.worldmodel.phone.screen import find
from services.worldmodel.tasks import make
from services.worldmodel.tasks.checks import check
from wmkit.domain.actions import OpenApp, Tap

here = step(boot(3), OpenApp("torch"))
assert loads(dumps(here)) == here and "Light" in html(here)
lit = step(here, Tap(find(here, "flip").at))
assert lit.of("Torch").on is not here.of("Torch").on
report = check("torch_on", range(10))
assert report.problems == [], report.problems
print(report.complexity, make("clock_alarm_on", 5).start.launcher.pages[0])
"""


def test_the_section_is_short():
    assert 30 < len(SECTION.splitlines()) < 60


def test_an_app_and_a_template_are_added_by_a_module_and_a_line_each(tmp_path):
    worldmodel = tmp_path / "services" / "worldmodel"
    for package in ("phone", "tasks"):
        shutil.copytree(ROOT / "services" / "worldmodel" / package, worldmodel / package)
    (worldmodel / "__init__.py").touch()
    for name, code in FILE.findall(SECTION):
        assert not (tmp_path / name).exists()
        (tmp_path / name).write_text(code)
    for name, change in LINE.findall(SECTION):
        before, *added = change.splitlines()
        text = (tmp_path / name).read_text()
        assert text.count(f"{before[1:]}\n") == 1 and before[0] == " "
        assert len(added) == 1 and added[0][0] == "+"
        lines = f"{before[1:]}\n{added[0][1:]}\n"
        (tmp_path / name).write_text(text.replace(f"{before[1:]}\n", lines))
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PLAY], env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    complexity, icons = done.stdout.split(" ", 1)
    assert 1 <= float(complexity) <= 5
    # The icons of the other apps stay where they are without it.
    from services.worldmodel.tasks import make

    assert icons.strip() == str(make("clock_alarm_on", 5).start.launcher.pages[0])
