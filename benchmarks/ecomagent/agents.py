"""Agents that need no model: they show that the tasks can be solved, and what each source of knowledge is worth.

- `oracle` knows the rubric and the target, and still goes to every source and finds the target by searching.
- `thorough` follows rules: profile, questions about every attribute, search, details, ratings, reviews, best match.
- `visible-only` does the same with the query alone.
- `random` recommends some product.

None of them knows what a clue means, but for the oracle, which does not need to. One that finds nothing says so, and
its episode ends without a product.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.matching import Wishes, score
from benchmarks.ecomagent.replies import Reply, ToolCall
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.tools.base import MOST_IDS
from benchmarks.ecomagent.wording import forms

Call = tuple[str, dict[str, Any]]
Script = Generator[Call, dict[str, Any], None]
"""An agent's run: it yields calls and is sent their results, errors too. It may end without a recommendation."""

VERSION = "2"
NOTHING = "Nothing that I found fits."
LOOKED_AT = 50  # products that an agent opens at most
SEARCHES = 24
SHORTLIST = 5
# What can be asked for, several a question, as a shopper answers a limited number of questions.
TOPICS = (
    ("special feature", "finish type", "connector type"),
    ("material feature", "closure", "screen size"),
    ("product benefits", "pattern", "form"),
    ("shape", "connectivity technology", "scent"),
    ("mounting type", "price", "ink color"),
    ("recommended uses for product", "graphics coprocessor"),
    ("number of ratings", "computer memory type", "point type"),
    ("average rating", "video capture resolution", "hardware platform"),
)
LONGEST_QUESTION = 100
# Words that titles of any kind have.
ANY_WORDS = ("for", "with", "black", "pack", "inches", "set", "white", "pro", "case", "small", "large", "blue", "by")


class ReferenceAgent:
    """Plays episodes by a script. ``facts`` hold its name, version and seed."""

    batched = False

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name, self.seed = name, seed
        self.facts: dict[str, Any] = {"agent": name, "version": VERSION, "seed": seed}
        self._script = AGENTS[name]
        self._running: WeakKeyDictionary[Episode, Script] = WeakKeyDictionary()

    def reply(self, turns: Sequence[tuple[int, Episode]]) -> list[Reply]:
        return [self._reply(episode) for _, episode in turns]

    def _reply(self, episode: Episode) -> Reply:
        if episode.steps == 0:
            rng = random.Random(f"{self.seed}:{self.name}:{episode.task.id}:{episode.trial}")
            self._running[episode] = self._script(episode.task, rng)
        call = _next_call(self._running[episode], episode)
        if call is None:
            return Reply(NOTHING)
        name, arguments = call
        return Reply("", (ToolCall(f"call_{episode.steps + 1}", name, json.dumps(arguments, ensure_ascii=False)),))


def _next_call(script: Script, episode: Episode) -> Call | None:
    """What the script calls next, once it has been told what came of its last call; None where it is over."""
    newest = episode.history[-1]
    try:
        return script.send(json.loads(newest["content"])) if newest["role"] == "tool" else next(script)
    except StopIteration:
        return None


def oracle(task: Task, rng: random.Random) -> Script:
    yield "get_user_profile", {}
    for slot in task.clarification_script.clarification_slots:
        yield "ask_user", {"question": f"What about the {slot.trigger_keywords[0]}?"}
    target = task.target_product
    found = yield "search_products", {"query": target.title}
    if target.product_id not in _ids(found):
        yield "get_product_details", {"product_id": target.product_id}
    yield "recommend_product", {"product_id": target.product_id, "reasoning": "It is the target."}


def thorough(task: Task, rng: random.Random) -> Script:
    wishes = Wishes(query=task.user_query)
    answer = yield "get_user_profile", {}
    wishes.profile = answer["profile"].get("product_requirements", {})
    yield from _ask(wishes)
    yield from _shop(wishes)


def visible_only(task: Task, rng: random.Random) -> Script:
    yield from _shop(Wishes(query=task.user_query))


def at_random(task: Task, rng: random.Random) -> Script:
    words = rng.sample(ANY_WORDS, len(ANY_WORDS))
    for word in (*words, *forms(task.user_query)):
        found = yield "search_products", {"query": word}
        if ids := _ids(found):
            yield "recommend_product", {"product_id": rng.choice(ids), "reasoning": "Why not?"}
            return


def _ids(found: dict[str, Any]) -> list[str]:
    """The products of a search's result; none where the search was refused."""
    return [product["product_id"] for product in found.get("products", ())]


AGENTS: dict[str, Callable[[Task, random.Random], Script]] = {
    "oracle": oracle,
    "thorough": thorough,
    "visible-only": visible_only,
    "random": at_random,
}


def _ask(wishes: Wishes) -> Script:
    """Ask about every topic, then singly about those that were asked about together with one that was answered.

    What the shopper says most often is what they say when they have nothing to say.
    """
    told: dict[tuple[str, ...], str] = {}
    for topics in TOPICS:
        answer = yield "ask_user", {"question": f"Any wishes as to {', '.join(topics)}?"[:LONGEST_QUESTION]}
        told[topics] = answer.get("user_response", "")
    ((silence, _),) = Counter(told.values()).most_common(1)
    wishes.answers = [text for text in dict.fromkeys(told.values()) if text != silence]
    for topic in [topic for topics, text in told.items() if text != silence for topic in topics]:
        answer = yield "ask_user", {"question": f"Any wish as to the {topic}?"}
        if answer.get("turns_remaining", 0) <= 0:
            return
        if (text := answer["user_response"]) not in (silence, *wishes.answers):
            wishes.answers.append(text)


def _shop(wishes: Wishes) -> Script:
    """Search, open what was found, and recommend what meets most of what is known."""
    ids = yield from _search(wishes.query)
    opened: dict[str, dict[str, Any]] = {}
    for product_id in ids[:LOOKED_AT]:
        result = yield "get_product_details", {"product_id": product_id}
        if "product" in result:
            opened[product_id] = result["product"]
    for start in range(0, len(opened), MOST_IDS):
        stats = yield "get_product_review_stats", {"product_ids": list(opened)[start : start + MOST_IDS]}
        for entry in stats.get("products", ()):
            opened[entry["product_id"]] |= entry
    scores = {product_id: score(wishes, product) for product_id, product in opened.items()}
    best = sorted(scores, key=lambda product_id: -scores[product_id])[:SHORTLIST]
    for quoted in wishes.quoted:
        for product_id in best:
            result = yield "get_review_content", {"query": quoted, "product_id": product_id}
            scores[product_id] += bool(result.get("reviews"))
    if best:
        chosen = max(best, key=lambda product_id: scores[product_id])
        yield "recommend_product", {"product_id": chosen, "reasoning": "It meets most of what is known."}


def _search(query: str) -> Generator[Call, dict[str, Any], list[str]]:
    """Products found by the words of the query's beginning that stand together in titles, longest group first."""
    groups = list(_word_groups(re.split(r"(?<=[.?!])\s", query)[0]))
    for words in groups[:SEARCHES]:
        found = yield "search_products", {"query": words}
        ids = _ids(found)
        if not ids or "message" in found:  # some of the words had to be left out
            continue
        size, page = len(ids), 1
        while len(ids) < min(LOOKED_AT, found["total_found"]) and page * size < LOOKED_AT:
            more = yield "search_products", {"query": words, "page": page}
            ids += _ids(more)
            page += 1
        return list(dict.fromkeys(ids))
    return []


_IDLE = frozenset(
    forms("a an the and or i i'm i'd my me it its to of for with in on that is am be do can you help find")
)


def _word_groups(sentence: str) -> Iterator[str]:
    """Groups of three, two and one words in a row of a sentence, none of which begins or ends with an idle word."""
    words = re.findall(r"[\w'&-]+", sentence)
    for size in (3, 2, 1):
        for start in range(len(words) - size + 1):
            group = words[start : start + size]
            if not {*forms(group[0]), *forms(group[-1])} & _IDLE:
                yield " ".join(group)
