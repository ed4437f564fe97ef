"""Working something out, and the recommendation that ends a visit."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import Field

from benchmarks.ecomagent.sandbox import MODULES, SandboxUnavailable, default_sandbox
from benchmarks.ecomagent.tools.base import Arguments, BadCall, Tool, Visit
from recipes.base import short_repr

LONGEST_CODE = 20_000
log = logging.getLogger(__name__)


class PythonArguments(Arguments):
    code: str = Field(description="Python code that prints its result")


class RecommendArguments(Arguments):
    product_id: str = Field(description="the id of the product to recommend")
    reasoning: str = Field(description="why it fits everything that the shopper needs")


def python_execute(visit: Visit, given: PythonArguments) -> dict[str, Any]:
    """Run code in `benchmarks.ecomagent.sandbox`; ``error`` is null or what went wrong, ``output`` what was printed."""
    if len(given.code) > LONGEST_CODE:
        raise BadCall(f"code: {len(given.code)} characters; give at most {LONGEST_CODE}")
    try:
        outcome = (visit.sandbox or default_sandbox()).run(given.code)
    except SandboxUnavailable as error:
        log.warning("%s", error)
        return {"output": "", "error": "python_execute is not available here; work it out without it"}
    return {"output": outcome.output, "error": outcome.error}


def recommend_product(visit: Visit, given: RecommendArguments) -> dict[str, Any]:
    """Ends the visit. An id that no product has ends it in compat, without a product; strict refuses it, once told."""
    product = visit.catalogue.product(given.product_id)
    if product is None and visit.strict:
        raise BadCall(
            f"product_id: no product has the id {short_repr(given.product_id)}; ids come from search_products"
        )
    visit.finished, visit.reasoning = True, given.reasoning
    visit.recommended = None if product is None else product.id
    shown = None if product is None else {"product_id": product.id, "title": product.title}
    return {"recommended_product": shown, "reasoning": given.reasoning}


PYTHON_EXECUTE = Tool(
    "python_execute",
    "Run Python code for arithmetic, such as the price after a voucher. Only what it prints comes back. It may import "
    f"{', '.join(MODULES)}; it has no files and no network.",
    PythonArguments,
    python_execute,
)
RECOMMEND_PRODUCT = Tool(
    "recommend_product",
    "Recommend the one product that fits everything. This ends the visit; there is no second recommendation.",
    RecommendArguments,
    recommend_product,
)
