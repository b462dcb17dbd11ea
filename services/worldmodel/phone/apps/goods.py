"""The data of Shop: what is sold at which price, the cart, orders and gifts.

Prices are in cents. Not here: pages and reactions (`shop`).
"""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.state import Part
from services.worldmodel.phone.tiles import Tiles, scatter

CATALOGUE = {
    "Home": ("Lamp", "Kettle", "Pillow", "Vase", "Mirror"),
    "Sport": ("Ball", "Racket", "Rope", "Helmet", "Skates"),
    "Toys": ("Puzzle", "Kite", "Robot", "Blocks", "Yoyo"),
    "Kitchen": ("Mug", "Knife", "Toaster", "Bowl", "Tray"),
}
CATEGORY = {item: category for category, items in CATALOGUE.items() for item in items}
MAX_ORDERS = 20


@dataclass(frozen=True)
class Item:
    """Something to buy; names are unique. `cents` is the price of one."""

    name: str
    cents: int
    in_stock: bool = True


@dataclass(frozen=True)
class Line:
    """So many of an item in the cart."""

    name: str
    quantity: int = 1


@dataclass(frozen=True)
class Order:
    """What was bought, and for how much in all."""

    lines: tuple[Line, ...]
    cents: int


@dataclass(frozen=True)
class Shop(Part):
    """`orders` has the latest last; `by_price` sorts lists; `gifts` are the closed parcels."""

    items: tuple[Item, ...]
    cart: tuple[Line, ...] = ()
    orders: tuple[Order, ...] = ()
    saved: tuple[str, ...] = ()
    by_price: bool = False
    gifts: Tiles = ()

    def eased(self, start: "Shop", want: "Shop") -> "Shop":
        """Sorting is only a way of looking, unless it is asked for."""
        if start.by_price == want.by_price:
            return replace(self, by_price=want.by_price)
        return self

    def facts(self) -> "Shop":
        """The order in which things came into the cart, or were saved, does not matter."""
        cart = tuple(sorted(self.cart, key=lambda line: line.name))
        return replace(self, cart=cart, saved=tuple(sorted(self.saved)))

    def item(self, name: str) -> Item | None:
        """The item of that name."""
        return next((item for item in self.items if item.name == name), None)

    def price(self, name: str) -> int:
        """Cents of one item. Raises ValueError for what is not sold here."""
        item = self.item(name)
        if item is None:
            raise ValueError(f"there is no item {name!r}")
        return item.cents

    def quantity(self, name: str) -> int:
        """How many of an item are in the cart."""
        return next((line.quantity for line in self.cart if line.name == name), 0)

    @property
    def total(self) -> int:
        """What the cart costs, in cents."""
        return sum(line.quantity * self.price(line.name) for line in self.cart)

    def putting(self, name: str, quantity: int) -> "Shop":
        """The shop with so many of an item in the cart; a new line comes last."""
        if quantity <= 0:
            return replace(self, cart=tuple(line for line in self.cart if line.name != name))
        if self.quantity(name):
            lines = (Line(name, quantity) if line.name == name else line for line in self.cart)
            return replace(self, cart=tuple(lines))
        return replace(self, cart=(*self.cart, Line(name, quantity)))

    def saving(self, name: str, saved: bool) -> "Shop":
        """The shop with one item on the list of saved ones or not."""
        kept = tuple(other for other in self.saved if other != name)
        return replace(self, saved=(*kept, name) if saved else kept)

    def stocking(self, name: str, in_stock: bool) -> "Shop":
        """The shop with one item in stock or sold out."""
        items = (replace(i, in_stock=in_stock) if i.name == name else i for i in self.items)
        return replace(self, items=tuple(items))

    def buying(self) -> "Shop":
        """The shop after the cart was bought."""
        order = Order(self.cart, self.total)
        return replace(self, cart=(), orders=(*self.orders, order)[-MAX_ORDERS:])

    def opening(self, name: str) -> "Shop":
        """The shop after the parcel with that item was opened: a free order, the rest gone."""
        order = Order((Line(name),), 0)
        return replace(self, gifts=(), orders=(*self.orders, order)[-MAX_ORDERS:])

    def listed(self, category: str) -> tuple[Item, ...]:
        """The items of a category as they stand in its list."""
        items = tuple(item for item in self.items if CATEGORY[item.name] == category)
        return self.ordered(items)

    def found(self, words: str) -> tuple[Item, ...]:
        """The items whose name holds the words; none for no words."""
        needle = words.strip().lower()
        items = tuple(item for item in self.items if needle and needle in item.name.lower())
        return self.ordered(items)

    def ordered(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """By price where that is on, else as they came."""
        if not self.by_price:
            return items
        return tuple(sorted(items, key=lambda item: (item.cents, item.name)))


def money(cents: int) -> str:
    """As drawn: $12.50."""
    return f"${cents // 100}.{cents % 100:02d}"


def boot(rng: Random) -> Shop:
    """Four items of every category at different prices, some sold out; a cart begun."""
    names = [name for items in CATALOGUE.values() for name in rng.sample(items, 4)]
    prices = rng.sample(range(3, 80), len(names))
    items = tuple(
        Item(name, 100 * price - rng.choice((1, 5, 25, 50, 75)), rng.random() < 0.85)
        for name, price in zip(names, prices, strict=True)
    )
    shop = Shop(tuple(rng.sample(items, len(items))))
    stocked = [item.name for item in items if item.in_stock]
    for name in rng.sample(stocked, rng.randint(0, 3)):
        shop = shop.putting(name, rng.randint(1, 3))
    shop = shop.saving(rng.choice(names), True)
    if rng.random() < 0.5:
        shop = replace(shop, orders=(Order((Line(stocked[0]),), shop.price(stocked[0])),))
    return replace(shop, gifts=scatter(rng, rng.sample(stocked, 5)))
