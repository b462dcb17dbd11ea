"""Tasks in the Shop."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.goods import CATALOGUE, CATEGORY, Line, Order, Shop, money
from services.worldmodel.phone.apps.shop import MAX_QUANTITY, NAME
from services.worldmodel.phone.state import Frame, Nav, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = NAME
ROOT, CART = Frame("Shop"), Frame("Cart")
ADD = ("Put {} {} into the cart.", "Add {} {} to the cart in Shop.", "I want {} {} in my cart.")
ADD_ONE = ("Put a {} into the cart.", "Add one {} to the cart in Shop.", "I want a {} in my cart.")
BUY = ("Buy a {}, and nothing else.", "Order one {} in Shop.", "Get me just one {} from the Shop.")
PRICE = ("What does the {} cost?", "Tell me the price of the {} in Shop.", "How much is a {}?")
TOTAL = (
    "What does everything in my cart cost?",
    "How much is the cart in Shop in all?",
    "Tell me the total of my cart.",
)
CHEAPEST = (
    "Which is the cheapest item in {}?",
    "Name the item of the lowest price in the category {}.",
    "Which thing under {} in Shop costs least?",
)
DROP = (
    "Remove the {} from the cart.",
    "Take the {} out of my cart.",
    "I do not want the {} any more: clear it from the cart.",
)
OVER = (
    "If the cart costs more than ${1}, remove the {0} from it; otherwise save the {0}.",
    "Take the {0} out of the cart if the total is over ${1}, else put a star on the {0}.",
    "When my cart is over ${1}, drop the {0}, if not, save the {0} for later.",
)
SAVE = (
    "Make sure that the {} and the {} are saved in Shop.",
    "The {} and the {} should both be among my saved items.",
    "See to it that {} and {} are saved.",
)
GIFT = (
    "Take the {} from the Gifts in Shop.",
    "Claim the {} as my gift.",
    "Open the parcel in Gifts that holds the {}.",
)
ORDER = (
    "What did my latest order cost?",
    "How much did I pay for the last order in Shop?",
    "Tell me the price of my newest order.",
)


def _stocked(shop: Shop) -> list[str]:
    return [item.name for item in shop.items if item.in_stock]


def _page(name: str) -> tuple[Frame, ...]:
    return (ROOT, Frame("category", CATEGORY[name]), Frame("item", name))


def _add(rng: Random, phone: Phone, _seed: int) -> Draft:
    shop: Shop = phone.of(APP)
    name, count = rng.choice(_stocked(shop)), rng.randint(1, 4)
    start = shop.putting(name, 0)
    words = wordings(ADD, str(count), name)
    return change(phone, words, APP, start, start.putting(name, count))


def _add_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds the item is sold out."""
    shop: Shop = phone.of(APP)
    name = rng.choice([item.name for item in shop.items])
    start = shop.putting(name, 0).stocking(name, seed % 2 == 0)
    words = wordings(ADD_ONE, name)
    if seed % 2 == 0:
        return change(phone, words, APP, start, start.putting(name, 1))
    data = edited(phone.data, **{APP: start})
    return Draft(words, data, data, Look(APP, _page(name)), feasible=False)


def _buy(rng: Random, phone: Phone, _seed: int) -> Draft:
    """What lies in the cart must not be bought along with it."""
    shop: Shop = phone.of(APP)
    name = rng.choice(_stocked(shop))
    start = replace(shop, cart=())
    if rng.random() < 0.5:
        other = rng.choice([n for n in _stocked(shop) if n != name])
        start = start.putting(other, 1)
    order = Order((Line(name),), shop.price(name))
    want = replace(start, cart=(), orders=(*start.orders, order))
    return change(phone, wordings(BUY, name), APP, start, want)


def _price(rng: Random, phone: Phone, _seed: int) -> Draft:
    item = rng.choice(phone.of(APP).items)
    look = Look(APP, _page(item.name)[:2])
    words = wordings(PRICE, item.name)
    return Draft(words, phone.data, phone.data, look, money(item.cents), "money")


def _filled(rng: Random, shop: Shop) -> Shop:
    """A cart of two to four lines."""
    shop = replace(shop, cart=())
    for name in rng.sample(_stocked(shop), rng.randint(2, 4)):
        shop = shop.putting(name, rng.randint(1, 3))
    return shop


def _total(rng: Random, phone: Phone, _seed: int) -> Draft:
    shop = _filled(rng, phone.of(APP))
    data = edited(phone.data, **{APP: shop})
    return Draft(TOTAL, data, data, Look(APP, (CART,)), money(shop.total), "money")


def _cheapest(rng: Random, phone: Phone, _seed: int) -> Draft:
    shop: Shop = phone.of(APP)
    category = rng.choice(tuple(CATALOGUE))
    cheapest = min(shop.listed(category), key=lambda item: item.cents)
    look = Look(APP, (ROOT, Frame("category", category)))
    words = wordings(CHEAPEST, category)
    return Draft(words, phone.data, phone.data, look, cheapest.name, "choice")


def _drop(rng: Random, phone: Phone, _seed: int) -> Draft:
    shop = _filled(rng, phone.of(APP))
    name = rng.choice(shop.cart).name
    return change(phone, wordings(DROP, name), APP, shop, shop.putting(name, 0))


def _over(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The total stands on the cart's page, from which the item is reached."""
    shop = _filled(rng, phone.of(APP))
    name = rng.choice(shop.cart).name
    start = shop.saving(name, False)
    limit = max(5, start.total // 100 + rng.choice((-30, -10, -3, 4, 11, 30)))
    over = start.total > 100 * limit
    want = start.putting(name, 0) if over else start.saving(name, True)
    draft = change(phone, wordings(OVER, name, str(limit)), APP, start, want)
    return replace(draft, starts=(Nav(), Nav(APP, ((APP, (ROOT,)),)), Nav(APP, ((APP, (CART,)),))))


def _save(rng: Random, phone: Phone, _seed: int) -> Draft:
    """One of the two is saved already: touching it would undo that."""
    shop: Shop = phone.of(APP)
    a, b = rng.sample([item.name for item in shop.items], 2)
    saved = rng.choice((a, b))
    start = shop.saving(a, a == saved).saving(b, b == saved)
    want = start.saving(a, True).saving(b, True)
    return change(phone, wordings(SAVE, a, b), APP, start, want)


def _gift(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Parcels look alike; the first one that is opened counts."""
    shop: Shop = phone.of(APP)
    name = rng.choice(shop.gifts)[1]
    draft = change(phone, wordings(GIFT, name), APP, shop, shop.opening(name))
    page = (APP, (ROOT, Frame("gifts")))
    return replace(draft, starts=(Nav(APP, (page,)), Nav(APP, ((APP, (ROOT,)),)), Nav()))


def _order(rng: Random, phone: Phone, _seed: int) -> Draft:
    shop: Shop = phone.of(APP)
    for name in rng.sample(_stocked(shop), rng.randint(1, 3)):
        quantity = rng.randint(1, min(3, MAX_QUANTITY))
        order = Order((Line(name, quantity),), quantity * shop.price(name))
        shop = replace(shop, orders=(*shop.orders, order))
    data = edited(phone.data, **{APP: shop})
    look = Look(APP, (ROOT, Frame("orders")))
    return Draft(ORDER, data, data, look, money(shop.orders[-1].cents), "money")


TEMPLATES = (
    Template("shop_add_to_cart", (APP,), "list", _add),
    Template("shop_add_maybe", (APP,), "infeasible", _add_maybe),
    Template("shop_buy", (APP,), "form", _buy),
    Template("shop_price", (APP,), "lookup", _price),
    Template("shop_cart_total", (APP,), "lookup", _total),
    Template("shop_cheapest", (APP,), "lookup", _cheapest),
    Template("shop_drop_from_cart", (APP,), "list", _drop),
    Template("shop_if_cart_over", (APP,), "conditional", _over),
    Template("shop_save_both", (APP,), "distractor", _save),
    Template("shop_gift", (APP,), "look_ahead", _gift),
    Template("shop_latest_order", (APP,), "lookup", _order),
)
