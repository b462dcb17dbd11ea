"""Shop: a catalogue by category and by search, a cart with quantities, and orders.

Prices are in cents. "Buy" is final: it turns the cart into an order that cannot be taken
back. The gifts are five parcels that look alike; opening one orders what is inside and closes the
others for good.
"""

from dataclasses import replace

from services.worldmodel.phone.app import App, Listing, Reply, pop, push
from services.worldmodel.phone.apps.goods import (
    CATALOGUE,
    CATEGORY,
    Item,
    Order,
    Shop,
    boot,
    money,
)
from services.worldmodel.phone.effects import Toast
from services.worldmodel.phone.geometry import CELL_H, WIDTH, Element
from services.worldmodel.phone.look import BLUE, GREEN, INK, LIME, LOOK, ORANGE, PINK, RED, VIOLET
from services.worldmodel.phone.state import Frame, Stack
from services.worldmodel.phone.tiles import tiles
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    button,
    field,
    pill,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Shop"
ICONS = {"Home": (ORANGE, "lamp"), "Sport": (GREEN, "ball"), "Toys": (VIOLET, "kite"),
         "Kitchen": (RED, "bowl")}  # fmt: skip
COLOR = LOOK[NAME][0]
VISIBLE = 8
FOUND = 4
IN_CART = 6
MAX_LINES = 12
MAX_QUANTITY = 9
FIELDS = ("Search",)
TABS = (("Shop", "bag"), ("Cart", "cart"))
_LINE = '<path d="{}" fill="none" stroke="currentColor" stroke-width="2.8" stroke-linecap="round" '
_LINE += 'stroke-linejoin="round"/>'
GLYPHS = {
    "bag": '<path d="M4 8h16l1.5 14h-19z"/>' + _LINE.format("M8 10V6a4 4 0 0 1 8 0v4"),
    "lamp": '<path d="M7 2h10l4 10H3z"/><rect x="10.8" y="12" width="2.4" height="7"/>'
    '<rect x="6" y="19" width="12" height="3" rx="1"/>',
    "ball": '<circle cx="12" cy="12" r="8.7" fill="none" stroke="currentColor" '
    'stroke-width="2.8"/>' + _LINE.format("M4 8c5 3 11 3 16 0M4 16c5-3 11-3 16 0"),
    "kite": '<path d="M12 1l8 8l-8 9l-8-9z"/>' + _LINE.format("M12 17c-3 2 3 3 0 6"),
    "receipt": '<path d="M4 2h16v20l-4-2.5l-4 2.5l-4-2.5L4 22z"/>',
    "ranks": _LINE.format("M3 6h18M3 12h12M3 18h6"),
    "minus": _LINE.format("M4 12h16"),
}


def title(_data: Shop, frame: Frame) -> str:
    """The word in the app bar."""
    names = {"Shop": NAME, "search": "Search", "pay": "Checkout", "order": "Order"}
    return names.get(frame.page, frame.item or frame.page.capitalize())


def draw(data: Shop, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    action = {"category": ("sort", "ranks"), "Shop": ("orders", "receipt")}.get(frame.page)
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, action)
    if frame.page == "Shop":
        for i, name in enumerate(CATALOGUE):
            out += row("shop", 1 + i, name, key=f"category:{name}", icon=ICONS[name])
        out += row("shop", 5, "Search", key="search", icon=(INK, "search"))
        count = len(data.saved)
        out += row("shop", 6, "Saved", key="saved", sub=f"{count} saved", icon=(PINK, "star"))
        if data.gifts:
            out += row("shop", 7, "Gifts", key="gifts", sub="Pick one", icon=(BLUE, "gift"))
    elif frame.page == "Cart":
        out += _cart(data, frame)
    elif frame.page in ("category", "search", "saved"):
        out += _items(data, frame)
    elif frame.page == "item":
        out += _item(data, frame)
    elif frame.page == "pay":
        for i, line in enumerate(data.cart[frame.scroll : frame.scroll + IN_CART]):
            sub = f"{line.quantity} x {money(data.price(line.name))}"
            out += row("shop", 1 + i, line.name, sub=sub)
        out += scroll_bar("shop", frame.scroll, IN_CART, len(data.cart), 1)
        out.append(_total(data))
        if data.cart:
            out += pill("shop", 8, "Buy", "buy", RED, "check")
    elif frame.page == "orders":
        latest = data.orders[::-1]
        for i, order in enumerate(latest[frame.scroll : frame.scroll + VISIBLE]):
            at = len(latest) - frame.scroll - i
            sub = money(order.cents) if order.cents else "Free"
            key = f"order:{at}"
            icon = (LIME, "receipt")
            out += row("shop", 1 + i, f"Order {at}", key=key, sub=sub, icon=icon)
        out += scroll_bar("shop", frame.scroll, VISIBLE, len(latest), 1)
        if not latest:
            out.append(text("shop/empty", "No orders yet", (80, 300, 920, 120), "body"))
    elif frame.page == "order":
        order = _order(data, frame)
        for i, line in enumerate(order.lines[frame.scroll : frame.scroll + VISIBLE]):
            out += row("shop", 1 + i, line.name, sub=f"{line.quantity} bought")
        out += scroll_bar("shop", frame.scroll, VISIBLE, len(order.lines), 1)
    elif frame.page == "gifts":
        words = "Every parcel holds a gift." if data.gifts else "You took your gift."
        out.append(text("shop/gifts", words, (80, 280, 920, 100), "body"))
        out += tiles("shop", [place for place, _ in data.gifts])
    else:
        raise ValueError(f"Shop has no page {frame.page!r}")
    if len(stack) == 1:
        out += tabs("shop", COLOR, frame.page, TABS)
    return out


def _cart(data: Shop, frame: Frame) -> Elements:
    out: Elements = []
    for i, line in enumerate(data.cart[frame.scroll : frame.scroll + IN_CART]):
        sub = f"{line.quantity} x {money(data.price(line.name))}"
        out += row("shop", 1 + i, line.name, key=f"item:{line.name}", sub=sub)
    out += scroll_bar("shop", frame.scroll, IN_CART, len(data.cart), 1)
    if not data.cart:
        out.append(text("shop/empty", "Your cart is empty", (80, 300, 920, 120), "body"))
        return out
    out.append(_total(data))
    return out + pill("shop", 8, "Pay", "pay", COLOR, "cart")


def _total(data: Shop) -> Element:
    words = f"Total {money(data.total)}"
    return text("shop/total", words, (80, 7 * CELL_H + 70, WIDTH - 160, 100), "row")


def _items(data: Shop, frame: Frame) -> Elements:
    """A list of items with prices; the search page has its field above it."""
    items, visible, top = _shown(data, frame), VISIBLE, 1
    out: Elements = []
    if frame.page == "search":
        words = frame.field("Search")
        out += field("shop", 1, "Search", words, frame.focus == "Search", "search")
        visible, top = FOUND, 2
        if words.strip() and not items:
            out.append(text("shop/nothing", "Nothing found", (80, 540, 920, 120), "body"))
    for i, item in enumerate(items[frame.scroll : frame.scroll + visible]):
        key = f"item:{item.name}"
        sub = money(item.cents) if item.in_stock else f"{money(item.cents)}, sold out"
        mark = "star" if item.name in data.saved else ""
        tone = "gold" if mark else ""
        out += row("shop", top + i, item.name, key=key, sub=sub, mark=mark, tone=tone)
    return out + scroll_bar("shop", frame.scroll, visible, len(items), top)


def _shown(data: Shop, frame: Frame) -> tuple[Item, ...]:
    if frame.page == "search":
        return data.found(frame.field("Search"))
    if frame.page == "saved":
        return data.ordered(tuple(item for item in data.items if item.name in data.saved))
    if frame.item not in CATALOGUE:
        raise ValueError(f"there is no category {frame.item!r}")
    return data.listed(frame.item)


def _item(data: Shop, frame: Frame) -> Elements:
    item = _known(data, frame)
    saved = item.name in data.saved
    mark, tone = ("star", "gold") if saved else ("", "")
    out = row("shop", 1, item.name, sub=CATEGORY[item.name], mark=mark, tone=tone)
    price = (80, 2 * CELL_H + 30, WIDTH - 160, 160)
    out.append(text("shop/price", money(item.cents), price, "big"))
    count = data.quantity(item.name)
    stock = "In stock" if item.in_stock else "Sold out"
    out.append(text("shop/stock", stock, (80, 3 * CELL_H + 20, 920, 90), "body"))
    if count:
        out.append(
            text("shop/count", f"{count} in the cart", (80, 3 * CELL_H + 120, 920, 90), "sub")
        )
    if item.in_stock:
        out += button("shop", 0, 5, "Add", "more", COLOR, "plus")
    if count:
        out += button("shop", 1, 5, "Less", "less", ORANGE, "minus")
        out += button("shop", 2, 5, "Remove", "remove", RED, "trash")
    out += button("shop", 3, 5, "Unsave" if saved else "Save", "save", PINK, "star")
    return out


def _known(data: Shop, frame: Frame) -> Item:
    item = data.item(frame.item)
    if item is None:
        raise ValueError(f"there is no item {frame.item!r}")
    return item


def _order(data: Shop, frame: Frame) -> Order:
    if not (frame.item.isascii() and frame.item.isdigit()):
        raise ValueError(f"there is no order {frame.item!r}")
    at = int(frame.item[:3])
    if not 1 <= at <= len(data.orders):
        raise ValueError(f"there is no order {frame.item!r}")
    return data.orders[at - 1]


def tap(data: Shop, stack: Stack, key: str) -> Reply[Shop]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    match verb:
        case "tab":
            return Reply(data, stack if frame.page == name else (Frame(name),))
        case "search":
            return Reply(data, (*stack, Frame("search", focus="Search")))
        case "category" | "saved" | "gifts" | "item" | "orders" | "order" | "pay":
            return Reply(data, push(stack, verb, name))
        case "sort":
            words = "As they came" if data.by_price else "Sorted by price"
            return Reply(replace(data, by_price=not data.by_price), stack, (Toast(words),))
        case "more":
            return _more(data, stack)
        case "less":
            return Reply(data.putting(frame.item, data.quantity(frame.item) - 1), stack)
        case "remove":
            return Reply(data.putting(frame.item, 0), stack, (Toast("Removed"),))
        case "save":
            return Reply(data.saving(frame.item, frame.item not in data.saved), stack)
        case "buy":
            cart = (Frame("Cart"),)
            return Reply(data.buying(), push(cart, "orders"), (Toast("Order placed"),))
    assert verb == "tile", key
    gift = dict(data.gifts)[int(name)]
    return Reply(data.opening(gift), push(pop(stack), "orders"), (Toast(f"You got: {gift}"),))


def _more(data: Shop, stack: Stack) -> Reply[Shop]:
    name = stack[-1].item
    count = data.quantity(name)
    if count >= MAX_QUANTITY or (count == 0 and len(data.cart) >= MAX_LINES):
        return Reply(data, stack, (Toast("The cart is full"),))
    return Reply(data.putting(name, count + 1), stack, (Toast("Added to cart"),))


def listing(data: Shop, frame: Frame) -> Listing | None:
    """Lists of items, cart and orders scroll."""
    if frame.page in ("category", "search", "saved"):
        keys = tuple(f"item:{item.name}" for item in _shown(data, frame))
        return Listing(keys, FOUND if frame.page == "search" else VISIBLE)
    if frame.page in ("Cart", "pay"):
        return Listing(tuple(f"item:{line.name}" for line in data.cart), IN_CART)
    if frame.page == "orders":
        keys = tuple(f"order:{at}" for at in range(len(data.orders), 0, -1))
        return Listing(keys, VISIBLE)
    if frame.page == "order":
        return Listing(tuple(line.name for line in _order(data, frame).lines), VISIBLE)
    return None


def fields(frame: Frame) -> tuple[str, ...]:
    """The search page has one field."""
    return FIELDS if frame.page == "search" else ()


def door(frame: Frame) -> str:
    """The key that opens a page."""
    if frame.page in ("Shop", "Cart"):
        return f"tab:{frame.page}"
    return f"{frame.page}:{frame.item}" if frame.item else frame.page


def pages(data: Shop) -> tuple[Stack, ...]:
    """Both tabs, the categories with some item, search, saved and orders."""
    shop, cart = (Frame("Shop"),), (Frame("Cart"),)
    inner = tuple(push(shop, "category", name) for name in CATALOGUE)
    items = tuple(
        push(push(shop, "category", c), "item", data.listed(c)[0].name) for c in CATALOGUE
    )
    search = (*shop, Frame("search", focus="Search"))
    return (shop, cart, *inner, *items, search, push(shop, "saved"), push(shop, "orders"))


APP = App(
    NAME,
    Shop,
    Frame("Shop"),
    boot,
    title,
    draw,
    tap,
    listing,
    door,
    pages,
    fields=fields,
    glyphs=GLYPHS,
)
