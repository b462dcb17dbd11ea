"""Shop, played by hand on a small catalogue."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, step, title
from services.worldmodel.phone.apps.goods import Item, Line, Order, Shop, money
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.tiles import key_of
from tests.unit.phone.play import press
from wmkit.domain.actions import Back, OpenApp, Type

ITEMS = (Item("Vase", 1999), Item("Lamp", 1250), Item("Kite", 500, in_stock=False), Item("Mug", 75))
GIFTS = ((1, "Lamp"), (4, "Mug"), (6, "Vase"))


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


@pytest.fixture
def phone() -> Phone:
    phone, shop = boot(1), Shop(ITEMS, gifts=GIFTS)
    data = tuple((n, shop if n == "Shop" else part) for n, part in phone.data)
    return step(replace(phone, data=data), OpenApp("Shop"))


def test_money_is_written_with_cents():
    assert [money(5), money(1250), money(100000)] == ["$0.05", "$12.50", "$1000.00"]


def test_a_category_sorts_by_price(phone):
    page = press(phone, "category:Home")
    assert rows(page) == ["Vase", "Lamp"] and {"$19.99", "$12.50"} <= set(texts(page))
    assert rows(press(page, "sort")) == ["Lamp", "Vase"]
    assert press(page, "sort", "sort").of("Shop") == page.of("Shop")
    shop = page.of("Shop")
    assert press(page, "sort").of("Shop").eased(shop, shop) == shop


def test_search_finds_by_part_of_a_name(phone):
    page = step(press(phone, "search"), Type("A"))
    assert rows(page) == ["Vase", "Lamp"]
    assert rows(step(page, Type("mp", clear=False))) == ["Lamp"]
    nothing = step(page, Type("zzz"))
    assert rows(nothing) == [] and "Nothing found" in texts(nothing)
    assert title(press(page, "item:Lamp")) == "Lamp"


def test_the_cart_counts_and_adds_up(phone):
    item = press(phone, "category:Home", "item:Lamp", "more", "more")
    assert item.of("Shop").cart == (Line("Lamp", 2),) and "2 in the cart" in texts(item)
    vase = press(step(step(item, Back()), Back()), "category:Home", "item:Vase", "more")
    cart = press(step(step(vase, Back()), Back()), "tab:Cart")
    assert rows(cart) == ["Lamp", "Vase"] and "2 x $12.50" in texts(cart)
    assert "Total $44.99" in texts(cart)
    lamp = press(cart, "item:Lamp")
    assert press(lamp, "less").of("Shop").quantity("Lamp") == 1
    assert press(lamp, "remove").of("Shop").cart == (Line("Vase"),)
    full = press(lamp, *["more"] * 9)
    assert full.of("Shop").quantity("Lamp") == 9


def test_buying_is_final_and_empties_the_cart(phone):
    item = press(phone, "category:Home", "item:Lamp", "more", "more")
    pay = press(step(step(item, Back()), Back()), "tab:Cart", "pay")
    assert title(pay) == "Checkout" and pay.of("Shop").orders == ()
    done = press(pay, "buy")
    assert done.of("Shop").orders == (Order((Line("Lamp", 2),), 2500),)
    assert done.of("Shop").cart == () and "Order placed" in texts(done)
    assert rows(done) == ["Order 1"] and "$25.00" in texts(done)
    assert rows(press(done, "order:1")) == ["Lamp"]


def test_what_is_sold_out_cannot_be_put_into_the_cart(phone):
    item = press(phone, "category:Toys", "item:Kite")
    assert "Sold out" in texts(item) and find(item, "more") is None


def test_items_are_saved(phone):
    item = press(phone, "category:Home", "item:Vase", "save")
    assert item.of("Shop").saved == ("Vase",)
    assert rows(press(step(step(item, Back()), Back()), "saved")) == ["Vase"]
    assert press(item, "save").of("Shop").saved == ()


def test_parcels_look_alike_and_only_one_can_be_opened(phone):
    page = press(phone, "gifts")
    parcels = [e for e in elements(page) if e.role == "glyph" and e.id.startswith("shop/tile-")]
    assert len(parcels) == 3 and len({(e.color, e.glyph, e.text) for e in parcels}) == 1
    words = {e.text for e in elements(page)}
    assert not words & {"Lamp", "Mug"}
    opened = press(page, key_of(GIFTS, "Mug"))
    assert opened.of("Shop").orders == (Order((Line("Mug"),), 0),)
    assert opened.of("Shop").gifts == () and "You got: Mug" in texts(opened)
