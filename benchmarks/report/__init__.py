"""What every report is made of: one self-contained HTML page, its tables and charts, and a list of records."""
