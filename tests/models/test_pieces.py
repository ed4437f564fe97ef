"""Attention in pieces: what torch's own gives, in few sizes of products."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from models.pieces import attend_in_pieces, round_up


@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize("filling", [0, 27])
@pytest.mark.parametrize(("before", "new"), [(0, 5), (37, 1), (37, 40), (64, 101)])
def test_pieces_give_what_torch_gives_in_products_of_few_sizes(
    before: int, new: int, filling: int, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.pieces.TABLE", 0)  # as few queries at once as there may be
    generator = torch.Generator().manual_seed(0)
    every = before + new + filling
    queries = torch.randn(2, 3, new, 8, generator=generator)
    keys, values = torch.randn(2, 2, every, 8, generator=generator)
    place, other = torch.arange(before, before + new)[:, None], torch.arange(every)
    sees = (other <= place) & (other > place - (window or every))
    sizes = set()

    def hide(table: torch.Tensor, start: int, end: int, seen: slice) -> None:
        assert table.shape == (2, 3, end - start, seen.stop - seen.start)
        sizes.add((end - start, seen.stop - seen.start, seen.stop == every))
        table.masked_fill_(~sees[start:end, seen], float("-inf"))

    found = attend_in_pieces(queries, keys.transpose(1, 2), values, hide, window, filling)
    expected = F.scaled_dot_product_attention(queries, keys[:, None], values[:, None], attn_mask=sees, scale=1.0)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    for rows, columns, to_the_end in sizes:
        assert rows % 16 == 0 or rows == new
        assert columns % 64 == 0 or to_the_end
        assert rows <= 32


def test_rounding_up() -> None:
    assert [round_up(number, 16) for number in (0, 1, 16, 17)] == [0, 16, 16, 32]
