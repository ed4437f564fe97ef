"""How judges are used: on files of any length, on whole plans, and over HTTP."""
