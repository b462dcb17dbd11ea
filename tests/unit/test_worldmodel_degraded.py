"""The degraded phone: faults at the stated rates, each with its own effect, all repeatable."""

from collections import Counter

import pytest

from services.worldmodel import phone as phones
from services.worldmodel.backends.degraded import FAULTS, Degraded, Seen, read_rates
from services.worldmodel.tasks import TEMPLATES, make
from wmkit.domain.actions import TERMINAL, Action, Tap
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.tasks import TaskRef

TASK = TaskRef(template="settings_turn_on", seed=2)


async def then(model: Degraded, value: Seen, action: Action) -> Seen:
    found = (await model.predict(value, model.snap(action), 0)).value
    assert found is not None
    return found


def only(fault: str) -> Degraded:
    return Degraded({fault: 1.0})


def start() -> tuple[Seen, Action]:
    """A phone and an action that changes it."""
    task = make(TASK.template, TASK.seed)
    return Seen(task.start, task.start), task.oracle(task.start)


async def test_without_faults_it_is_the_exact_phone() -> None:
    model = Degraded({})
    for name in list(TEMPLATES)[:20]:
        task = make(name, 3)
        value, exact = Seen(task.start, task.start), task.start
        while not isinstance(action := task.oracle(exact), TERMINAL):
            value, exact = await then(model, value, action), phones.step(exact, model.snap(action))
            assert value == Seen(exact, exact)
            assert model.html(value) == phones.html(exact)


async def test_an_ignored_action_changes_nothing() -> None:
    value, action = start()
    assert await then(only("ignored"), value, action) == value


async def test_a_stale_screen_hides_what_has_happened() -> None:
    model = only("stale")
    value, action = start()
    stale = await then(model, value, action)
    assert stale.phone == phones.step(value.phone, model.snap(action)) != value.phone
    assert model.html(stale) == model.html(value)
    assert model.digest(stale) != model.digest(value)
    assert model.screen_digest(stale) == model.screen_digest(value)


async def test_a_wrong_page_keeps_the_data() -> None:
    model = only("wrong_page")
    value, action = start()
    wrong = await then(model, value, action)
    exact = phones.step(value.phone, model.snap(action))
    assert wrong.phone.data == exact.data and wrong.phone.nav != exact.nav


async def test_a_dropped_element_is_neither_drawn_nor_hit() -> None:
    model = only("dropped")
    value, action = start()
    lame = await then(model, value, action)
    (missing,) = (e for e in phones.elements(lame.phone) if e.id == lame.dropped)
    assert f'data-id="{missing.id}"' in phones.html(lame.phone)
    assert f'data-id="{missing.id}"' not in model.html(lame)
    assert missing.id not in {e.id for e in model.elements(lame)}
    assert await then(model, lame, Tap(missing.at)) == lame


async def test_a_renamed_element_says_another_word() -> None:
    model = only("renamed")
    value, action = start()
    odd = await then(model, value, action)
    (right,) = (e.text for e in phones.elements(odd.phone) if e.id == odd.renamed)
    (shown,) = (e.text for e in model.elements(odd) if e.id == odd.renamed)
    assert shown == odd.word != right
    assert odd.phone == phones.step(value.phone, model.snap(action))


async def test_faults_come_at_the_stated_rates() -> None:
    """Some 1,950 transitions, one in ten of each fault: within four standard deviations."""
    model = Degraded(dict.fromkeys(FAULTS, 0.1))
    seen: Counter[str] = Counter()
    for seed in range(500):
        task = make("contacts_star", seed)
        value = Seen(task.start, task.start)
        for element in [e for e in phones.elements(task.start) if e.clickable][:4]:
            after = await then(model, value, Tap(element.at))
            exact = phones.step(task.start, model.snap(Tap(element.at)))
            seen[
                "dropped" if after.dropped
                else "renamed" if after.renamed
                else "stale" if after.shown != after.phone
                else "fine" if after.phone == exact
                else "ignored" if after == value
                else "wrong_page"
            ] += 1  # fmt: skip
    n = sum(seen.values())
    for fault in FAULTS:
        assert abs(seen[fault] - n / 10) < 4 * (n * 0.1 * 0.9) ** 0.5, seen


async def test_the_same_step_suffers_the_same_and_another_seed_another() -> None:
    rates = dict.fromkeys(FAULTS, 0.2)
    value, action = start()
    found = [await then(Degraded(rates, seed), value, action) for seed in (0, 0, 1, 2, 3, 4)]
    assert found[0] == found[1]
    assert len({repr(one) for one in found}) > 1
    revisions = {Degraded(rates, seed).revision for seed in (0, 1)} | {Degraded({}).revision}
    assert len(revisions) == 3


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_state_survives_its_bytes(fault: str) -> None:
    model = only(fault)
    value, action = start()
    after = await then(model, value, action)
    assert model.loads(model.dumps(after)) == after
    for junk in (b"", b"[]", model.dumps(after)[:-1], b'["a","","","",""]'):
        with pytest.raises(ValueError, match="not a"):
            model.loads(junk)


def test_the_predicate_is_the_phone_s() -> None:
    model = Degraded({})
    task = make(TASK.template, TASK.seed)
    assert model.judge(TASK, Seen(task.start, task.start), None, "success").verdict == "failure"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("stail=0.1", "unknown fault 'stail'; there are: ignored, stale"),
        ("stale=2", r"stale needs a rate in \[0, 1\], is '2'"),
        ("stale", r"stale needs a rate in \[0, 1\], is ''"),
        ("stale=0.6,dropped=0.6", "add up to more than 1"),
    ],
)
def test_a_bad_rate_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        read_rates(text)


def test_rates_are_read() -> None:
    assert read_rates("stale=0.1, dropped=0.05") == {"stale": 0.1, "dropped": 0.05}
    assert read_rates("") == {}
