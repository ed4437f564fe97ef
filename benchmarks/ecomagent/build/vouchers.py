"""Vouchers for budget tasks: simple (half of them), tiered and stacked (a quarter each), in amounts of whole cents.

The shares and bounds are the published ones. The budget is drawn between the price after the voucher and 8 % above, so
it never tells the price, as a stated total would.
"""

from __future__ import annotations

import random
from decimal import ROUND_UP, Decimal
from typing import Any

from benchmarks.ecomagent.grading.vouchers import price_after
from benchmarks.ecomagent.tasks import Voucher

SCENARIOS = ("simple", "tiered", "stacked")
WEIGHTS = (0.5, 0.25, 0.25)
ISSUERS = ("platform", "shop", "brand")
SLACK = 0.08  # of the price after the voucher


def draw(price: float, rng: random.Random) -> Voucher:
    """A voucher that takes something off a price, with the budget that the task sets."""
    scenario = rng.choices(SCENARIOS, WEIGHTS)[0]
    fields = {"simple": _simple, "tiered": _tiered, "stacked": _stacked}[scenario](price, rng)
    after = float(price_after(price, Voucher.model_validate(fields)))
    budget = Decimal(str(after * (1 + rng.uniform(0, SLACK)))).quantize(Decimal("0.01"), ROUND_UP)
    money = {"budget": float(budget), "total_original_price": price, "price_after_voucher": after}
    return Voucher.model_validate({**fields, **money})


def _simple(price: float, rng: random.Random) -> dict[str, Any]:
    threshold = _whole(price * rng.uniform(0.4, 0.8))
    return {"voucher_type": rng.choice(ISSUERS), "threshold": threshold, **_discount(price, rng)}


def _discount(price: float, rng: random.Random) -> dict[str, Any]:
    """An amount of 5 to 25 % of the price, or a share of 5 to 20 % with a cap of 10 to 30 % of the price."""
    if rng.random() < 0.5:
        return _fixed(price * rng.uniform(0.05, 0.25))
    return _percentage(rng.uniform(0.05, 0.20), price * rng.uniform(0.10, 0.30))


def _fixed(amount: float) -> dict[str, Any]:
    return {"discount_type": "fixed", "face_value": _money(amount), "discount": None, "cap": None}


def _percentage(share: float, cap: float) -> dict[str, Any]:
    return {"discount_type": "percentage", "face_value": None, "discount": round(share, 2), "cap": _money(cap)}


def _tiered(price: float, rng: random.Random) -> dict[str, Any]:
    """Two tiers, of which the price reaches the first only; the second takes half as much again off."""
    discount = _discount(price, rng)
    first = {"tier": 1, "threshold": _whole(price * rng.uniform(0.4, 0.7)), **discount}
    more = (
        _fixed(discount["face_value"] * 1.5)
        if discount["discount_type"] == "fixed"
        else _percentage(discount["discount"] * 1.5, discount["cap"] * 1.5)
    )
    beyond = float(max(int(price * rng.uniform(1.1, 1.5)), int(price) + 1))
    return {
        **discount,
        "voucher_type": rng.choice(ISSUERS),
        "discount_type": "tiered",
        "threshold": first["threshold"],
        "tiers": [first, {"tier": 2, "threshold": beyond, **more}],
        "active_tier": 1,
    }


def _stacked(price: float, rng: random.Random) -> dict[str, Any]:
    """A share off by the platform or brand, then an amount off by the shop."""
    threshold = _whole(price * rng.uniform(0.4, 0.8))
    share = _percentage(rng.uniform(0.05, 0.15), price * rng.uniform(0.10, 0.30))
    amount = _fixed(price * rng.uniform(0.03, 0.12))
    off = min(price * share["discount"], share["cap"])
    issuer = rng.choice(("platform", "brand"))
    return {
        "voucher_type": "stacked",
        "discount_type": "stacked",
        "threshold": threshold,
        "face_value": None,
        "discount": None,
        "cap": None,
        "coupons": [
            {"voucher_type": issuer, "threshold": threshold, **share, "actual_discount": round(off, 2)},
            {"voucher_type": "shop", "threshold": None, **amount, "actual_discount": amount["face_value"]},
        ],
    }


def _money(amount: float) -> float:
    """An amount such as people print on vouchers: half dollars, at least one half."""
    return max(0.5, round(amount * 2) / 2)


def _whole(amount: float) -> float:
    return float(max(1, int(amount)))
