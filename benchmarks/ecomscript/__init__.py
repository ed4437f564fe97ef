"""The three tasks of EcomScriptBench (ACL 2025): a checkpoint judges labelled records, and is measured."""
