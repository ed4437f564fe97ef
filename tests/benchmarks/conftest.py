"""One thread is fastest for models this small, and slows nobody else down."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
