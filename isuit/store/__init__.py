"""The DuckDB store: its connection, migrations and tables."""
