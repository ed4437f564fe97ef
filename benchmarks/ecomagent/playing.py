"""Many episodes at once: side by side over one local model, or each in a thread of its own.

Episodes are dealt out to lanes by their number alone, and each lane plays its episodes one after the other. For a
batched player every turn of all lanes is one batch; which lane an episode has, and so where it stands in the batch,
depends on neither kills nor the others' lengths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.replies import Reply
from benchmarks.ecomagent.tasks import Task

FEW = 3  # episodes that break down or never begin, and none ends otherwise: the next ones would fare no better
NO_TURN = "its first message leaves no room for a turn in the model's context"


class PlayerGone(ValueError):
    """Nobody plays any more, whatever the episode; says why. Episodes that have not ended are as if never begun."""


class Player(Protocol):
    """Who shops. ``name`` is for people, ``facts`` fix what it does and hold no path, address or key.

    ``batched``: turns of several episodes are best asked for together; else each episode has a thread.
    """

    name: str
    facts: dict[str, Any]
    batched: bool

    def reply(self, turns: Sequence[tuple[int, Episode]]) -> list[Reply]:
        """The next turn of each (lane, episode), in order. Lanes are numbered from 0; an episode keeps its lane.

        Raises PlayerGone where it can play no episode; what else it raises is the episode's end.
        """


@dataclass(frozen=True)
class Errand:
    """An episode to be played: a task, and which of its trials (from 1)."""

    task: Task
    trial: int = 1


def deal(errands: Sequence[Errand], lanes: int, done: Collection[str] = ()) -> list[list[Errand]]:
    """What each lane has to play: every errand has its lane by its number, whichever of them (by task id) are done."""
    dealt: list[list[Errand]] = [[] for _ in range(lanes)]
    for number, errand in enumerate(errands):
        if errand.task.id not in done:
            dealt[number % lanes].append(errand)
    return dealt


def play(
    player: Player,
    lanes: Sequence[Iterable[Errand]],
    start: Callable[[Errand], Episode],
    ended: Callable[[Episode], None],
    proven: bool = False,
) -> None:
    """Play all errands of all lanes; ``ended`` gets each episode as soon as it is over, one at a time.

    An episode whose player or tools fail ends with an error, and the others go on; a batched player's failure is
    everyone's, and is raised.

    Raises PlayerGone where the player is gone, or, unless it is ``proven`` (earlier episodes have ended), where
    episodes break down, or end before their first turn, and none ends otherwise: as many as there are lanes, or all;
    and at least three. What has ended otherwise was handed on by then.
    """
    endings = _Endings(ended, max(FEW, len(lanes)), proven)
    if player.batched:
        _side_by_side(player, [deque(lane) for lane in lanes], start, endings)
    else:
        _apart(player, [list(lane) for lane in lanes], start, endings)
    endings.settle()


@dataclass
class _Endings:
    """Hands on episodes that have ended; those that broke down or never began wait until one has ended otherwise."""

    ended: Callable[[Episode], None]
    most_broken: int
    proven: bool
    waiting: list[Episode] = field(default_factory=list)

    def __call__(self, episode: Episode) -> None:
        self.proven = self.proven or (episode.error is None and episode.steps > 0)
        self.waiting.append(episode)
        if self.proven or len(self.waiting) >= self.most_broken:
            self.settle()

    def settle(self) -> None:
        """Hand on what waits. Raises PlayerGone where that is too much of what broke down."""
        if not self.proven and len(self.waiting) >= FEW:
            first = self.waiting[0]
            raise PlayerGone(
                f"the first {len(self.waiting)} episodes all broke down, {first.task.id} first: "
                f"{first.error or NO_TURN}; mend that, and give the same command again"
            )
        while self.waiting:
            self.ended(self.waiting.pop(0))


def _side_by_side(
    player: Player,
    waiting: list[deque[Errand]],
    start: Callable[[Errand], Episode],
    ended: Callable[[Episode], None],
) -> None:
    playing: dict[int, Episode] = {}
    with ThreadPoolExecutor(max(1, len(waiting))) as pool:
        while True:
            for lane, errands in enumerate(waiting):
                if lane not in playing and errands:
                    playing[lane] = start(errands.popleft())
            if not playing:
                return
            turns = sorted(playing.items())
            replies = player.reply(turns)
            list(pool.map(_take, [episode for _, episode in turns], replies))
            for lane, episode in turns:
                if episode.done:
                    ended(playing.pop(lane))


def _apart(
    player: Player,
    lanes: list[list[Errand]],
    start: Callable[[Errand], Episode],
    ended: Callable[[Episode], None],
) -> None:
    """Errands are taken in their order by whichever thread is free: nothing here depends on the lane."""
    count = max(map(len, lanes), default=0)
    order = [lane[place] for place in range(count) for lane in lanes if place < len(lane)]
    pool, stop = ThreadPoolExecutor(max(1, len(lanes))), Event()
    gone: PlayerGone | None = None
    try:
        played = [pool.submit(_alone, player, start, errand, stop) for errand in order]
        for future in as_completed(played):
            try:
                if (episode := future.result()) is not None:
                    ended(episode)
            except PlayerGone as error:  # what others are playing may end with its present turn
                gone = gone or error
                stop.set()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
    if gone is not None:
        raise gone


def _alone(player: Player, start: Callable[[Errand], Episode], errand: Errand, stop: Event) -> Episode | None:
    """The errand's episode once it has ended; None where all are to stop before that."""
    episode = None if stop.is_set() else start(errand)
    while episode is not None and not episode.done:
        if stop.is_set():
            return None
        try:
            (reply,) = player.reply([(0, episode)])
        except PlayerGone:
            stop.set()
            raise
        except Exception as error:  # whatever a server or its client answers is this episode's end, not the run's
            episode.crash(error)
        else:
            _take(episode, reply)
    return episode


def _take(episode: Episode, reply: Reply) -> None:
    try:
        episode.take(reply)
    except Exception as error:  # a fault of a tool must not take the other episodes with it
        episode.crash(error)
