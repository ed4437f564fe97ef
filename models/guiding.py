"""Guided writing: a grammar says which tokens may come next, so that what a model writes is well-formed.

The grammars are those of llguidance: Lark's notation with ``%json {schema}`` inside, and ``<[7]>`` for the token 7.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from llguidance import LLMatcher
from llguidance.hf import from_tokenizer
from transformers import PreTrainedTokenizerBase


class Guide:
    """One text on its way: `narrow` its next token's logits, then tell which token it `took`."""

    def __init__(self, matcher: LLMatcher) -> None:
        self.matcher = matcher

    def narrow(self, logits: torch.Tensor) -> None:
        """Rule out, in place, every token that the grammar does not allow next; ``logits`` [vocabulary].

        Where the grammar is at its end, only the end token is left.
        """
        bits = np.frombuffer(self.matcher.compute_bitmask(), dtype=np.uint8)
        allowed = torch.from_numpy(np.unpackbits(bits, bitorder="little").astype(bool))
        count = min(len(allowed), len(logits))
        logits[count:] = float("-inf")
        logits[:count].masked_fill_(~allowed[:count].to(logits.device), float("-inf"))

    def took(self, token: int) -> None:
        """The text goes on with this token. Raises ValueError for one that the grammar does not allow."""
        if not self.matcher.consume_token(token):
            raise ValueError(f"token {token} does not fit the grammar: {self.matcher.get_error()}")


class Guides:
    """Makes guides for one tokenizer.

    Args:
        vocabulary: logits that the model gives, at least as many as the tokenizer has tokens.
        ends: tokens that end a text.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, vocabulary: int, ends: set[int]) -> None:
        self._tokenizer = from_tokenizer(tokenizer, n_vocab=max(vocabulary, len(tokenizer)), eos_token=sorted(ends))
        self._parsed = lru_cache(maxsize=8)(self._parse)

    def guide(self, grammar: str) -> Guide:
        """A guide from the grammar's beginning. Raises ValueError for a faulty grammar."""
        return Guide(self._parsed(grammar).deep_copy())

    def _parse(self, grammar: str) -> LLMatcher:
        matcher = LLMatcher(self._tokenizer, grammar)
        if matcher.is_error():
            raise ValueError(f"the grammar cannot be used: {matcher.get_error()}")
        return matcher
