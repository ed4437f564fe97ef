"""What a voucher makes of a price, in exact decimal money.

The kinds are EComAgentBench's: an amount or a capped share off from a threshold on, tiers of which the highest reached
one counts, and coupons that apply one after the other. (The published judge is told to take tier 1 whatever the price;
a shop would not.)
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from benchmarks.ecomagent.catalogue import Product
from benchmarks.ecomagent.grading.verdict import Verdict
from benchmarks.ecomagent.tasks import Discount, Voucher

CENT = Decimal("0.01")


def budget_match(product: Product, budget: float, voucher: Voucher | None) -> Verdict:
    """Whether the product costs at most the budget once the voucher is applied; an unknown price does not."""
    if product.price is None:
        return Verdict(False, "the product has no price")
    price = price_after(product.price, voucher)
    met = price <= cents(budget)
    less = "" if voucher is None else f" after the voucher ({cents(product.price)} before)"
    return Verdict(met, f"the price is {price}{less}, the budget {cents(budget)}", "price")


def price_after(price: float, voucher: Voucher | None) -> Decimal:
    """The price in cents after the voucher, never below zero."""
    before = Decimal(str(price))
    if voucher is None:
        return cents(price)
    if voucher.coupons:
        granted = reaches(voucher, before)
        after = before
        for coupon in voucher.coupons if granted else ():
            after -= saving(coupon, after)
    elif voucher.tiers:
        reached = [tier for tier in voucher.tiers if reaches(tier, before)]
        best = max(reached, key=lambda tier: tier.threshold or 0.0, default=None)
        after = before - (saving(best, before) if best is not None else 0)
    else:
        after = before - saving(voucher, before)
    return max(after, Decimal(0)).quantize(CENT, ROUND_HALF_UP)


def reaches(discount: Discount, price: Decimal) -> bool:
    """Whether a price is high enough for a discount."""
    return discount.threshold is None or price >= Decimal(str(discount.threshold))


def saving(discount: Discount, price: Decimal) -> Decimal:
    """What one discount takes off a price."""
    if not reaches(discount, price):
        return Decimal(0)
    if discount.discount_type == "percentage":
        off = price * Decimal(str(discount.discount or 0))
        return off if discount.cap is None else min(off, Decimal(str(discount.cap)))
    return Decimal(str(discount.face_value or 0))


def cents(amount: float) -> Decimal:
    """An amount of money, rounded to the cent."""
    return Decimal(str(amount)).quantize(CENT, ROUND_HALF_UP)
