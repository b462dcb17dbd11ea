"""A task played by hand: the goal, numbered elements, actions, imagined screens, the judge."""

from contextlib import nullcontext
from pathlib import Path

from rich.markup import escape

from wmkit.cli import moves, places
from wmkit.cli.console import out
from wmkit.cli.private import private_stack
from wmkit.clients.sync import Phone, StepFailed, connect
from wmkit.domain.actions import Answer, Finish
from wmkit.domain.errors import WMError
from wmkit.domain.transition import Element, Outcome


def play(template: str, seed: int, worldmodel: str, save: Path | None) -> None:
    """Let a person act until the task is judged or left. Raises UnknownTask, StackFailed."""
    folder = save or places.root() / "var" / "play"
    private = private_stack("play", ("renderer", "worldmodel")) if not worldmodel else None
    with private or nullcontext() as stack:
        address = stack.address("worldmodel") if stack else worldmodel
        with connect(address) as world:
            phone = world.create_state(template, seed)
            folder.mkdir(parents=True, exist_ok=True)
            Session(phone, folder).run()


class Session:
    """One person at one phone. States never change, so the way back is a list of them."""

    def __init__(self, start: Phone, folder: Path) -> None:
        self._path = [start]
        self._folder = folder
        self._saved = 0

    @property
    def phone(self) -> Phone:
        return self._path[-1]

    def run(self) -> None:
        task = self.phone.task
        assert task is not None
        out.print(f"[bold]{escape(task.goal)}[/bold]")
        out.print(
            f"possible in {task.complexity} steps, at most {task.step_limit}; help lists moves"
        )
        self._show(self.phone, "start")
        while True:
            try:
                line = input(f"[{len(self._path) - 1}] > ")
            except EOFError:
                out.print()
                return
            try:
                if self._over(line):
                    return
            except (WMError, StepFailed) as error:
                out.print(f"[red]{escape(str(error))}[/red]")

    def _over(self, line: str) -> bool:
        """Do what the line says; True when the session has ended."""
        move = moves.read(line, self.phone.elements, self.phone.state.screen)
        match move.action:
            case None if move.word == "quit":
                return True
            case None if move.word == "undo":
                if len(self._path) > 1:
                    self._path.pop()
                self._show(self.phone, "undo")
            case None:
                out.print(moves.HELP)
            case Finish(status):
                self._judge(finish_status=status)
                return True
            case Answer(text):
                self._judge(answer=text)
                return True
            case action if move.imagine:
                self._show(self.phone.imagine(action), "imagined")
                out.print("[dim]imagined only: you are where you were[/dim]")
            case action:
                after = self.phone.step(action)
                self._path.append(after)
                self._show(after, action.name)
        return False

    def _show(self, phone: Phone, label: str) -> None:
        picture = self._folder / f"{self._saved:02d}-{label}.png"
        self._saved += 1
        phone.save(picture)
        if phone.outcome is Outcome.UNCHANGED:
            out.print("[yellow]nothing changed[/yellow]")
        for number, element in enumerate(phone.elements, 1):
            out.print(f" {number:3}  {_describe(element)}")
        out.print(f"[dim]screen: {escape(places.shown(picture))}[/dim]", soft_wrap=True)

    def _judge(self, *, answer: str | None = None, finish_status: str | None = None) -> None:
        judgement = self.phone.judge(answer=answer, finish_status=finish_status)
        colour = "green" if judgement.verdict == "success" else "red"
        steps = len(self._path) - 1
        out.print(
            f"[bold {colour}]{judgement.verdict}[/bold {colour}] after {steps} steps: "
            f"{escape(judgement.reason)} (judge: {judgement.judge})"
        )


def _describe(element: Element) -> str:
    marks = [
        word
        for word, applies in (
            ("on", element.checked is True),
            ("off", element.checked is False),
            ("focused", element.focused),
            ("disabled", not element.enabled),
        )
        if applies
    ]
    text = escape(element.text) or "[dim](no text)[/dim]"
    style = text if element.clickable else f"[dim]{text}[/dim]"
    return f"{element.role:10} {style}" + (f"  ({', '.join(marks)})" if marks else "")
