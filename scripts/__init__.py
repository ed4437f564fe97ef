"""The command line: one file per command, argument parsing and one call."""
