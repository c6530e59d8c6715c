"""What labels cost: the pay, what a platform takes on top of it, and how many labels an amount of money buys."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from nextlabel.errors import InputError
from nextlabel.wording import percent

#: An amount with its currency on either side; a comma stands before three digits, so that 1,50 is not taken for 150.
_AMOUNT: Final = re.compile(
    r"(?:([A-Za-z]{2,8}) ?)?((?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,6})?)(?: ?([A-Za-z]{2,8}))?"
)
#: What to give where a budget is neither.
BUDGET_HINT: Final = "Give a whole number, e.g. 1200, or money with its currency in letters, e.g. '120.50 EUR'."


class Price(NamedTuple):
    """Of a label: the ``pay``, and what the platform takes on top as a share of it; the currency may have no name."""

    pay: float
    fee: float = 0.0
    currency: str = ""

    @property
    def each(self) -> float:
        """What one label costs."""
        return self.pay * (1.0 + self.fee)

    def of(self, labels: float) -> str:
        """What so many labels cost, in words."""
        return f"{labels * self.each:,.2f} {self.currency}".rstrip()

    def describe(self) -> str:
        """What one label costs, in words."""
        fee = f" (pay {self.pay:g}, fee {percent(self.fee)})" if self.fee else ""
        return f"{self.each:.4g} {self.currency}".rstrip() + fee

    def labels_for(self, amount: str) -> int:
        """How many labels an amount such as '120 EUR' buys."""
        number = (_AMOUNT.fullmatch(amount.strip()) or [""] * 3)[2]
        if self.each <= 0:
            raise InputError(
                f"how many labels {amount} buy depends on the pay, and none is given.", "Give the pay per label too."
            )
        labels = math.floor(float(number.replace(",", "")) / self.each + 1e-9)
        if labels < 1:
            raise InputError(f"{amount} buy no label: one costs {self.describe()}.", "Give more, or pay less.")
        return labels


def currency_of(text: object) -> str | None:
    """The currency of an amount of money; None if a text is no such amount."""
    found = _AMOUNT.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None or bool(found[1]) == bool(found[3]):
        return None
    return found[1] or found[3]
