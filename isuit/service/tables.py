"""Arrow tables from and to files, by the file's ending."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from isuit.documents import require_regular
from isuit.errors import InputError


def read_table(path: Path) -> pa.Table:
    """CSV, Parquet or Arrow."""
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq
    from pyarrow import feather

    readers = {".parquet": pq.read_table, ".arrow": feather.read_table, ".feather": feather.read_table}
    try:
        require_regular(path, "the file of --conditions")
        if path.suffix.lower() in readers:
            table = readers[path.suffix.lower()](path)
            table.validate(full=True)  # offsets of a damaged file may point outside of it
            return table
        convert = pcsv.ConvertOptions(strings_can_be_null=True, null_values=[""])
        return pcsv.read_csv(path, convert_options=convert)
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"{path.name} cannot be read as CSV, Parquet or Arrow; check its path and form") from None


def write_table(table: pa.Table, path: Path) -> None:
    """CSV, Parquet or Arrow."""
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq
    from pyarrow import feather

    writers = {
        ".csv": pcsv.write_csv,
        ".parquet": pq.write_table,
        ".arrow": lambda data, where: feather.write_feather(data, where, compression="uncompressed"),
        ".feather": feather.write_feather,
    }
    if path.suffix.lower() not in writers:
        raise InputError(f"the ending of {path.name} names no format; use {', '.join(writers)}")
    try:
        writers[path.suffix.lower()](table, str(path))
    except OSError as error:
        raise InputError(f"{path.name} cannot be written ({error.strerror}); name another place") from None
