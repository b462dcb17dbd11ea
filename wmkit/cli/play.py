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
    private = (
        private_stack("play", ("renderer", "worldmodel"), keep=False) if not worldmodel else None
    )
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
        move = moves.read(line, _touchable(self.phone), self.phone.state.screen)
        match move.action:
            case None if move.word == "quit":
                return True
            case None if move.word == "undo":
                if len(self._path) > 1:
                    self._path.pop()
                self._show(self.phone, "undo")
            case None:
                out.print(moves.HELP, soft_wrap=True)
            case Finish(status):
                self._judge(finish_status=status)
                return True
            case Answer(text):
                self._judge(answer=text)
                return True
            case action if move.imagine:
                self._show(self._acted(self.phone.imagine(action)), "imagined")
                out.print("[magenta]imagined only: you are where you were[/magenta]")
            case action:
                self._path.append(self._acted(self.phone.step(action)))
                self._show(self.phone, action.name)
        return False

    def _acted(self, phone: Phone) -> Phone:
        if phone.outcome is Outcome.UNCHANGED:
            out.print("[yellow]nothing changed[/yellow]")
        return phone

    def _show(self, phone: Phone, label: str) -> None:
        picture = self._folder / f"{self._saved:02d}-{label}.png"
        self._saved += 1
        phone.save(picture)
        touchable = _touchable(phone)
        for number, element in enumerate(touchable, 1):
            out.print(f" {number:3}  {_describe(element)}")
        named = {element.text for element in touchable}
        shown = (e.text for e in phone.elements if e.text and e.text not in named)
        texts = dict.fromkeys(shown)
        out.print(f"[dim]also: {escape(' · '.join(texts))}[/dim]", soft_wrap=True)
        out.print(f"[dim]screen: {escape(places.shown(picture))}[/dim]", soft_wrap=True)

    def _judge(self, *, answer: str | None = None, finish_status: str | None = None) -> None:
        judgement = self.phone.judge(answer=answer, finish_status=finish_status)
        colour = "green" if judgement.verdict == "success" else "red"
        count = len(self._path) - 1
        steps = "1 step" if count == 1 else f"{count} steps"
        out.print(
            f"[bold {colour}]{judgement.verdict}[/bold {colour}] after {steps}: "
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
    return f"{element.role:10} {text}" + (f"  ({', '.join(marks)})" if marks else "")


def _touchable(phone: Phone) -> list[Element]:
    """What is numbered: elements that do something when they are tapped."""
    return [element for element in phone.elements if element.clickable]
