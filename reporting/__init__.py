"""How results are shown: one self-contained HTML page, its tables and charts, and lists of records."""
