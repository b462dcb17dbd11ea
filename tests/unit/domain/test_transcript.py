"""What the transcript reader makes of one step, stretch by stretch."""

import pytest

from wmkit.domain.transcript import AFTER_THOUGHT, CALL_END, NOT_CLOSED, parse_thought


def calls(text: str) -> list[tuple[str, int]]:
    return [(call.text, call.parent) for call in parse_thought(text).calls]


def test_a_stretch_that_ends_in_a_call_waits_for_the_world_model() -> None:
    text = "<think>Is it this one? <call_wm>tap(1,2)</call_wm>"
    transcript = parse_thought(text)
    assert transcript.pending == transcript.calls[0]
    assert transcript.pending.text == "tap(1,2)"
    assert transcript.pending.problem == ""
    assert text[slice(*transcript.pending.span)] == "<call_wm>tap(1,2)</call_wm>"
    assert transcript.answer_text == ""
    assert transcript.problems == ()


def test_two_stretches_make_one_thought_and_one_answer() -> None:
    first = "<think>Is it this one? <call_wm>tap(1,2)</call_wm>"
    second = " Yes.</think>\nAction: tap(1,2)"
    transcript = parse_thought(first + second)
    assert transcript.pending is None
    assert transcript.thought == "Is it this one? <call_wm>tap(1,2)</call_wm> Yes."
    assert transcript.answer_text == "Action: tap(1,2)"
    assert (first + second)[transcript.answer_start :].strip() == transcript.answer_text
    assert transcript.problems == ()


def test_an_agent_may_open_each_stretch_with_think() -> None:
    text = "<think>a <call_wm>x()</call_wm>\n<think>b</think>Action: y()"
    transcript = parse_thought(text)
    assert transcript.answer_text == "Action: y()"
    assert transcript.problems == ()


def test_a_chain_names_the_screen_it_starts_from() -> None:
    text = '<think><call_wm>a()</call_wm> then <call_wm from="1">b()</call_wm>'
    assert calls(text) == [("a()", 0), ("b()", 1)]
    assert calls("<call_wm from=2>c()</call_wm>") == [("c()", 2)]


def test_several_calls_in_one_stretch_are_all_seen_and_only_the_last_waits() -> None:
    text = "<think><call_wm>a()</call_wm><call_wm>b()</call_wm> \n"
    transcript = parse_thought(text)
    assert [call.text for call in transcript.calls] == ["a()", "b()"]
    assert transcript.pending == transcript.calls[1]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("call_wm(action='tap(1,2)')", "tap(1,2)"),
        ('<think>x call_wm(action="tap(1,2)")', "tap(1,2)"),
        ("call_wm('tap(1,2)')", "tap(1,2)"),
        ("call_wm(tap(1,2))", "tap(1,2)"),
        ("call_wm(action='tap(start_box='(540,1200)')')", "tap(start_box='(540,1200)')"),
        (r"call_wm(action='type(content=\'it)s [\')')", "type(content='it)s [')"),
        ('call_wm(action="type(content=\'a) \\"b\\" (\')")', "type(content='a) \"b\" (')"),
        ("<call_wm>call_wm(action='tap(1,2)')</call_wm>", "tap(1,2)"),
    ],
)
def test_the_old_spelling_balances_brackets_and_quotes(text: str, action: str) -> None:
    pending = parse_thought(text).pending
    assert pending is not None
    assert pending.text == action


def test_the_old_spelling_knows_chains_too() -> None:
    assert calls("call_wm(action='tap(1,2)', from=1)") == [("tap(1,2)", 1)]


def test_a_call_whose_argument_has_quotes_and_brackets_is_kept_as_it_is() -> None:
    action = """type(content='f(x) = "[1, {2}]" </x>')"""
    assert calls(f"<think><call_wm>{action}</call_wm>") == [(action, 0)]


def test_an_answer_without_any_tag_is_the_whole_text() -> None:
    transcript = parse_thought("Action: tap(1,2)\n")
    assert (transcript.thought, transcript.answer_text) == ("", "Action: tap(1,2)")


def test_a_thought_that_the_prompt_opened_needs_no_think_tag() -> None:
    transcript = parse_thought("I see it.</think>\nAction: tap(1,2)")
    assert (transcript.thought, transcript.answer_text) == ("I see it.", "Action: tap(1,2)")


def test_an_unclosed_thought_has_no_answer_whatever_it_mentions() -> None:
    transcript = parse_thought("<think>I could do Action: tap(1,2)")
    assert transcript.answer_text == ""
    assert transcript.answer_start is None
    assert transcript.problems == (NOT_CLOSED,)


@pytest.mark.parametrize(
    "text",
    [
        "<think>a <think>b</think> c</think>Action: z()",  # closed as often as opened
        "<think>a <think>b c</think>Action: z()",  # closed once
        "<think>a</think>Action: z()",
    ],
)
def test_nested_thoughts_do_not_hide_the_answer(text: str) -> None:
    assert parse_thought(text).answer_text == "Action: z()"


def test_tags_typed_in_the_answer_are_words_of_the_answer() -> None:
    answer = "Action: type(content='</think> and <think>')"
    assert parse_thought(f"<think>a</think>{answer}").answer_text == answer


def test_a_call_after_the_thought_is_refused_and_does_not_spoil_the_answer() -> None:
    asked = "<think>a</think> <call_wm>b()</call_wm>"
    pending = parse_thought(asked).pending
    assert pending is not None
    assert pending.problem == AFTER_THOUGHT
    ended = parse_thought(asked + "\nAction: c()")
    assert ended.pending is None
    assert ended.answer_text == "Action: c()"
    again = parse_thought(asked + "<think>d</think>Action: e()")
    assert again.answer_text == "Action: e()"


def test_a_call_cut_off_by_the_end_of_the_thought_is_no_call() -> None:
    transcript = parse_thought("<think>a <call_wm>tap(1,2)</think>Action: z()")
    assert transcript.calls == ()
    assert transcript.answer_text == "Action: z()"
    assert transcript.problems == ("A <call_wm> is not closed.",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<think>a </call_wm>", "without a <call_wm>"),
        ("<think><call_wm> </call_wm>", "names no action"),
        ('<call_wm from="me">tap(1,2)</call_wm>', 'from="k"'),
    ],
)
def test_a_malformed_call_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    assert text.endswith(CALL_END)
    pending = parse_thought(text).pending
    assert pending is not None
    assert sentence in pending.problem
