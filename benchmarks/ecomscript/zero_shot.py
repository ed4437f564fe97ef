"""Zero-shot routes for pre-trained encoders: masked-LM scoring, an NLI head, a plausibility head.

How EcomScriptBench turned an item into text for these models is not published. Here the item is the judgment's own
plain text, and what is asked of it is a statement, given below for each judgment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    T5EncoderModel,
)

from benchmarks.ecomscript.scorer import UNCHOSEN, EachAlone, to_device
from models.backbone import LoadSettings, load_tokenizer, position_limit, resolve_dtype
from models.checkpoint import Checkpoint
from models.scoring import plan_batches, usual_token_budget
from recipes.base import Judgment

Floats = NDArray[np.float64]
Row = dict[str, list[int]]

# What holds if the answer is yes: the hypothesis of an NLI head, the end of a statement for a plausibility head.
STATEMENTS = {
    "script_verify": "The script is a feasible way to reach the goal.",
    "step_product": "The product serves the step.",
    "holistic_verify": "The whole plan holds together.",
}
CANDIDATES = ("This is not plausible.", "This is plausible.")
VERA_MAX_LENGTH = 128  # tokens with which VERA was trained and is evaluated (Liu et al. 2023, and its released code)


class ZeroShot(ABC):
    """A pre-trained model that reads items with a statement. A row is one text it reads; a record may take several."""

    temperature = 1.0
    threshold = 0.5
    threshold_from = UNCHOSEN
    shots = 0

    def __init__(
        self,
        judgment: Judgment[Any],
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int | None,
    ) -> None:
        self.judgment = judgment
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.max_length = min(max_length or self.own_limit(), self.own_limit())

    def own_limit(self) -> int:
        """Tokens that the model takes at most: its positions, and what its tokenizer says."""
        return min(position_limit(self.model) or 2**31, int(self.tokenizer.model_max_length))

    def items(self, records: Sequence[Any]) -> list[str]:
        return [self.judgment.render(record, "plain").text.strip() for record in records]

    @abstractmethod
    def rows(self, records: Sequence[Any]) -> list[list[Row]]:
        """The rows of each record."""

    @abstractmethod
    def margins(self, records: Sequence[Any]) -> Floats: ...

    def lengths(self, records: Sequence[Any]) -> list[int]:
        return [max(len(row["input_ids"]) for row in rows) for rows in self.rows(records)]

    def costs(self, records: Sequence[Any]) -> list[int]:
        """Tokens that each record takes in a batch, over all its rows."""
        return [sum(len(row["input_ids"]) for row in rows) for rows in self.rows(records)]

    def plan(
        self, records: Sequence[Any], lengths: Sequence[int], token_budget: int | None, threshold: float
    ) -> EachAlone:
        token_budget = token_budget or usual_token_budget(self.model.device)
        return EachAlone(records, plan_batches(self.costs(records), token_budget), self.margins)

    def encode(self, *texts: list[str], **options: bool) -> list[Row]:
        """Token ids of texts (or pairs of texts), never truncated."""
        batch = self.tokenizer(*texts, truncation=False, verbose=False, return_attention_mask=True, **options)
        return [{key: batch[key][place] for key in batch} for place in range(len(texts[0]))]

    def pad(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """The rows padded on the right to the longest, each [rows, tokens], on the model's device."""
        fill = {"input_ids": int(self.tokenizer.pad_token_id)}
        keys = [key for key in ("input_ids", "attention_mask", "token_type_ids") if key in rows[0]]
        return {
            key: pad_sequence([torch.tensor(row[key]) for row in rows], True, fill.get(key, 0)).to(self.model.device)
            for key in keys
        }


class MaskedLM(ZeroShot):
    """The statement that a masked language model finds likelier behind the item, as CAR and CANDLE are scored.

    Two candidates follow the item: "This is plausible." and "This is not plausible." Each token of a candidate is
    masked in turn, the item and the rest of the candidate in sight; the candidate's score is the mean log-probability
    of its tokens. The margin is the score of "plausible" less that of "not plausible", in nats a token. The item's own
    tokens are not masked: they are the same in both candidates, and would cost a forward pass each.
    """

    def rows(self, records: Sequence[Any]) -> list[list[Row]]:
        items = self.items(records)
        texts = [f"{item} {candidate}" for item in items for candidate in CANDIDATES]
        encoded = self.encode(texts, return_offsets_mapping=True, return_special_tokens_mask=True)
        found: list[list[Row]] = [[] for _ in records]
        for place, row in enumerate(encoded):
            record, candidate = divmod(place, len(CANDIDATES))
            begin = len(items[record])
            spans: Any = zip(row["offset_mapping"], row["special_tokens_mask"], strict=True)
            for position, ((_, end), special) in enumerate(spans):
                if end > begin and not special:
                    found[record].append(self._masked(row, position, candidate))
        return found

    def _masked(self, row: Row, position: int, candidate: int) -> Row:
        """The row with one token hidden; ``target`` is (candidate, position, hidden token)."""
        ids = list(row["input_ids"])
        target, ids[position] = ids[position], int(self.tokenizer.mask_token_id)
        return {**row, "input_ids": ids, "target": [candidate, position, target]}

    @torch.inference_mode()
    def margins(self, records: Sequence[Any]) -> Floats:
        by_record = self.rows(records)
        rows = [row for rows in by_record for row in rows]
        targets = torch.tensor([row["target"] for row in rows], device=self.model.device)
        candidate, position, hidden = targets.unbind(1)
        every = torch.arange(len(rows), device=self.model.device)
        log_p = self.model(**self.pad(rows)).logits[every, position].float().log_softmax(-1)[every, hidden]
        owner = torch.repeat_interleave(torch.tensor([len(rows) for rows in by_record])).to(self.model.device)
        place = owner * len(CANDIDATES) + candidate
        sums = torch.zeros(len(records) * len(CANDIDATES), device=self.model.device).index_add(0, place, log_p)
        means = (sums / torch.bincount(place, minlength=len(sums))).view(-1, len(CANDIDATES))
        return np.asarray((means[:, 1] - means[:, 0]).double().cpu())


class NLI(ZeroShot):
    """An MNLI head: the item is the premise, the judgment's statement the hypothesis.

    The margin is the logit of entailment less that of neutral (the two rows that the MARS benchmark's code keeps), or
    less that of contradiction (Yin et al. 2019). Where each label stands is read from the checkpoint's ``id2label``.
    """

    against: Literal["neutral", "contradiction"] = "neutral"

    def rows(self, records: Sequence[Any]) -> list[list[Row]]:
        pairs = self.encode(self.items(records), [STATEMENTS[self.judgment.name]] * len(records))
        return [[row] for row in pairs]

    @torch.inference_mode()
    def margins(self, records: Sequence[Any]) -> Floats:
        logits = self.model(**self.pad([row for (row,) in self.rows(records)])).logits.double()
        labels = nli_labels(self.model.config.id2label)
        return np.asarray((logits[:, labels["entailment"]] - logits[:, labels[self.against]]).cpu())


def nli_labels(id2label: dict[int, str]) -> dict[str, int]:
    """Places of entailment, neutral and contradiction. Raises ValueError where one is not named."""
    places = {name.strip().lower(): place for place, name in id2label.items()}
    wanted = ("entailment", "neutral", "contradiction")
    if set(places) != set(wanted):
        raise ValueError(
            f"its labels are {', '.join(id2label.values())}; method nli needs entailment, neutral and contradiction "
            "in the checkpoint's id2label"
        )
    return {name: int(places[name]) for name in wanted}


class Plausibility(ZeroShot):
    """A regression head of one logit over the item and its statement: p_yes = sigmoid(logit)."""

    def rows(self, records: Sequence[Any]) -> list[list[Row]]:
        statement = STATEMENTS[self.judgment.name]
        return [[row] for row in self.encode([f"{item} {statement}" for item in self.items(records)])]

    @torch.inference_mode()
    def margins(self, records: Sequence[Any]) -> Floats:
        return np.asarray(self.logits(self.pad([row for (row,) in self.rows(records)])).double().cpu())

    def logits(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """[rows]"""
        found: torch.Tensor = self.model(**batch).logits[:, 0]
        return found


class Vera(Plausibility):
    """VERA (Liu et al. 2023): a T5 encoder whose head lies in the embedding rows of three reserved tokens.

    Weight: the row of <extra_id_0>; bias: the first number of <extra_id_1>'s; temperature: the first of <extra_id_2>'s
    (rows 32099, 32098 and 32097 of the released checkpoint). The logit is that of the last token's hidden state;
    p_yes = sigmoid(logit / temperature).
    """

    def __init__(
        self,
        judgment: Judgment[Any],
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int | None,
    ) -> None:
        super().__init__(judgment, model, tokenizer, max_length or VERA_MAX_LENGTH)
        rows = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"])
        table: torch.Tensor = model.get_input_embeddings().weight.detach()
        self.weight, self.bias = table[rows[0]].float(), table[rows[1], 0].float()
        self.temperature = float(table[rows[2], 0])
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"its temperature would be {self.temperature:g}; this encoder holds no plausibility head")

    def own_limit(self) -> int:
        return 2**31  # relative positions

    def logits(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        hidden = self.model(**batch).last_hidden_state
        last = batch["attention_mask"].sum(dim=1) - 1
        ends: torch.Tensor = hidden[torch.arange(len(hidden), device=hidden.device), last].float()
        return ends @ self.weight + self.bias


def load_zero_shot(
    method: str,
    judgment: Judgment[Any],
    checkpoint: Checkpoint,
    settings: LoadSettings,
    max_length: int | None,
    device: torch.device,
) -> ZeroShot:
    """The scorer of masked_lm, nli or plausibility. Raises ValueError where the checkpoint has no head for it."""
    config = AutoConfig.from_pretrained(checkpoint.path, **checkpoint.tokenizer_kwargs(settings.trust_remote_code))
    kind, auto = _route(method, config)
    tokenizer = load_tokenizer(checkpoint, settings.trust_remote_code)
    try:
        if kind is MaskedLM and not (tokenizer.is_fast and tokenizer.mask_token_id is not None):
            raise ValueError("its tokenizer has no mask token, or cannot tell which token is which text")
        model, info = auto.from_pretrained(
            checkpoint.path,
            **checkpoint.model_kwargs(settings.trust_remote_code),
            dtype=resolve_dtype(settings.dtype),
            attn_implementation=settings.attention,
            output_loading_info=True,
        )
        if missing := sorted(info["missing_keys"]):
            more = " ..." if len(missing) > 3 else ""
            raise ValueError(f"it lacks {', '.join(missing[:3])}{more}: its head would be one of random weights")
        if kind is NLI:
            nli_labels(model.config.id2label)
        to_device(model, device)
        return kind(judgment, model, tokenizer, max_length)
    except ValueError as error:
        raise ValueError(f"{checkpoint.name} cannot be used with method {method}: {error}") from error


def is_vera(config: Any) -> bool:
    """Whether a configuration is that of a bare T5 encoder, as VERA is published."""
    return bool(config.architectures == ["T5EncoderModel"])


def _route(method: str, config: Any) -> tuple[type[ZeroShot], Any]:
    if method == "masked_lm":
        return MaskedLM, AutoModelForMaskedLM
    if method == "nli":
        return NLI, AutoModelForSequenceClassification
    if is_vera(config):
        return Vera, T5EncoderModel
    if config.num_labels != 1:
        raise ValueError(
            f"method plausibility needs a T5 encoder with VERA's head or a sequence classifier of one label; "
            f"this {config.model_type} has {config.num_labels} labels"
        )
    return Plausibility, AutoModelForSequenceClassification
