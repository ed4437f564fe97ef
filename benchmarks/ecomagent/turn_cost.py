"""What a turn costs as a conversation grows: `python -m benchmarks.ecomagent.turn_cost --checkpoint smollm2-135m`.

Conversations of twenty turns are played with the keys and values of earlier turns kept. The second and the last turn
are computed once more from nothing, which must give the same tokens. The model reads and writes all by itself, a fixed
number of tokens a turn; only its calls are given, so that there are real results. Prints one JSON object: tokens and
seconds of both turns, kept and anew. Seconds are those of the processor, all threads together, which tell the same on a
busy machine as on an idle one; on a GPU they are those of the clock.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.local_agent import LocalAgent, LocalSettings
from benchmarks.ecomagent.replies import Reply, ToolCall
from benchmarks.ecomagent.samples import open_catalogue, tasks_file
from benchmarks.ecomagent.tasks import read_tasks
from benchmarks.ecomagent.tools import TOOLS, Toolbox
from models.backbone import LoadSettings
from models.conversations import Answer, Conversations, Turn
from models.generation import SamplingSettings
from models.generators import open_generator
from models.local import LocalGenerator
from models.runtime import use_threads

SECOND, LAST = 2, 20


class Measured(LocalAgent):
    """Writes to its limit every turn, makes the calls that it is given, and measures two turns."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.turn = 0
        self.found: dict[str, dict[str, Any]] = {}

    def _finished(self, written: list[int]) -> bool:
        return False

    def _answers(self, talks: Conversations, asked: Sequence[Turn]) -> list[Answer]:
        self.turn += 1
        now = time.process_time if self.generator.model.device.type == "cpu" else time.perf_counter
        started = now()
        kept = super()._answers(talks, asked)
        seconds = now() - started
        if self.turn in (SECOND, LAST):
            started = now()
            anew = super()._answers(Conversations(self.generator.model, self.settings.lanes, keep=False), asked)
            self.found["second" if self.turn == SECOND else "last"] = {
                "tokens": sum(len(turn.ids) for turn in asked) // len(asked),
                "tokens_computed": sum(answer.computed for answer in kept) // len(kept),
                "seconds_kept": round(seconds, 3),
                "seconds_anew": round(now() - started, 3),
                "same_answers": [one.written for one in kept] == [one.written for one in anew],
            }
        return kept

    def _read(self, episode: Episode, turn: Turn, answer: Answer, seconds: float) -> Reply:
        reply = super()._read(episode, turn, answer, seconds)
        name, arguments = _call(episode)
        call = ToolCall(f"call_{episode.steps + 1}", name, json.dumps(arguments))
        return replace(reply, content=self._decode(answer.written), calls=(call,))


def _call(episode: Episode) -> tuple[str, dict[str, Any]]:
    """The calls of a shopper who looks at one product again and again, by the number of the turn."""
    product = episode.task.target_id
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("get_product_review_stats", {"product_ids": [product]}),
        ("filter_by_attribute", {"product_ids": [product], "attribute_name": "Color", "attribute_value": "Teal"}),
        ("ask_user", {"question": "What about the price?"}),
    ]
    return ("get_user_profile", {}) if not episode.steps else kinds[episode.steps % 3]


def measure(generator: LocalGenerator, lanes: int, written: int) -> dict[str, Any]:
    """What the second and the last turn of ``lanes`` conversations side by side cost, ``written`` tokens each."""
    catalogue, tasks = open_catalogue("sample"), read_tasks(tasks_file("sample"))[:lanes]
    schemas = [tool.schema("strict") for tool in TOOLS.values()]
    player = Measured(generator, schemas, SamplingSettings(max_tokens=written), LocalSettings(lanes))
    episodes = [Episode(task, Toolbox(catalogue, task)) for task in tasks]
    for _ in range(LAST):
        for episode, reply in zip(episodes, player.reply(list(enumerate(episodes))), strict=True):
            episode.take(reply)
    second, last = player.found["second"], player.found["last"]
    growth = {way: round(last[f"seconds_{way}"] / second[f"seconds_{way}"], 2) for way in ("kept", "anew")}
    ratios = {f"last_over_second_{way}": ratio for way, ratio in growth.items()}
    return {"checkpoint": generator.name, "lanes": lanes, "second": second, f"turn_{LAST}": last, **ratios}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="smollm2-135m")
    parser.add_argument("--lanes", type=int, default=2, help="conversations side by side (%(default)s)")
    parser.add_argument("--written", type=int, default=32, help="tokens written a turn (%(default)s)")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int)
    chosen = parser.parse_args(arguments)
    use_threads(chosen.threads)
    generator = open_generator(chosen.checkpoint, settings=LoadSettings(dtype=chosen.dtype))
    if not isinstance(generator, LocalGenerator):
        parser.error("--checkpoint: give a local checkpoint; a server keeps to itself what it keeps")
    print(json.dumps(measure(generator, chosen.lanes, chosen.written), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
