"""Started by accelerate launch with configs/accelerate/fsdp2.yaml: trains with accelerate taking the CPU for a GPU, so
that FSDP2, which it keeps to accelerators, shards over gloo."""

from __future__ import annotations

import torch
from accelerate.state import DistributedType, PartialState

from recipes.script_verify import SCRIPT_VERIFY
from train.run import main

cpu = torch.device("cpu")
PartialState._prepare_backend = lambda *_: ("gloo", DistributedType.MULTI_GPU)
PartialState.set_device = lambda state: setattr(state, "device", cpu)
PartialState.default_device = property(lambda _: cpu)
torch.accelerator.is_available = lambda *_: True


if __name__ == "__main__":
    main(SCRIPT_VERIFY)
