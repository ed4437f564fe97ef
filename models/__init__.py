"""Who judges: finding and loading a checkpoint, LoRA judges, scoring, text generation, sentence embeddings."""

import logging
import warnings

# bitsandbytes announces at import that an optional CPU kernel package is absent (nothing here asks for it), and at
# every int8 product that inputs are cast for it, which is what int8 means.
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
# peft 0.21 reads an attribute that transformers 5.24 has renamed.
warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
