"""Puts the Shop right: the cart, saved items, the gift, and orders, which are final."""

from services.worldmodel.phone.apps.goods import CATALOGUE, CATEGORY, Shop
from services.worldmodel.phone.apps.shop import NAME
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.phone.tiles import key_of
from services.worldmodel.tasks.touch import GIVE_UP, press, reach, shows
from wmkit.domain.actions import Action

SHOP, CART = Frame("Shop"), Frame("Cart")


def shop(phone: Phone, now: Shop, want: Shop) -> Action | None:
    """The next action; what was ordered by mistake, or the wrong gift, is given up."""
    new = want.orders[len(now.orders) :]
    if now.orders != want.orders[: len(now.orders)] or len(new) > 1:
        return GIVE_UP
    if now.gifts != want.gifts:
        if not now.gifts or not new:
            return GIVE_UP
        key = key_of(now.gifts, new[0].lines[0].name)
        return reach(phone, NAME, (SHOP, Frame("gifts"))) or press(phone, key)
    target = new[0].lines if new else want.cart
    quantities = {line.name: line.quantity for line in target}
    for item in now.items:
        count, should = now.quantity(item.name), quantities.get(item.name, 0)
        if count != should:
            change = "more" if count < should else "less" if should else "remove"
            return _item(phone, now, item.name) or press(phone, change)
        if (item.name in now.saved) != (item.name in want.saved):
            return _item(phone, now, item.name) or press(phone, "save")
    if new:
        return reach(phone, NAME, (CART, Frame("pay"))) or press(phone, "buy")
    if now.by_price != want.by_price:
        frame = phone.frame()
        here = frame.item if phone.nav.front == NAME and frame is not None else ""
        category = here if here in CATALOGUE else next(iter(CATALOGUE))
        return reach(phone, NAME, (SHOP, Frame("category", category))) or press(phone, "sort")
    return None


def _item(phone: Phone, now: Shop, name: str) -> Action | None:
    """To an item's page: where it is in front already, from the cart, or by its category."""
    if shows(phone, NAME, "item", name):
        return None
    stack, page = phone.nav.stack(NAME), Frame("item", name)
    if stack and stack[0].page == "Cart" and now.quantity(name):
        return reach(phone, NAME, (CART, page))
    return reach(phone, NAME, (SHOP, Frame("category", CATEGORY[name]), page))
