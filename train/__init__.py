"""How a judge is taught: the commands that ``accelerate launch`` starts, and what they share."""

import models  # noqa: F401  (before transformers' trainer: it keeps libraries quiet that speak at import)
