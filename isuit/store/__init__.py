"""The DuckDB store: its directory, lock, connection, migrations and tables.

A store is a directory. `opening.open_store` is the only way in: it takes the lock, finishes what a killed command
left behind, and gives a `Store` that holds the connection, the paths and the key. Nothing here knows about the log,
erasure or policies; the service layer passes those in as functions.
"""
