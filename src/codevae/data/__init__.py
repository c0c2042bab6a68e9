"""Data: tables and arrays into batches, what is learned of them, gaps, and a data set to try things on.

read_tables(["rna.csv", "protein.parquet"])  →  Tables(batch, schema)
modalities(batch), schema.modalities()       →  list[Modality]
"""

from codevae.data.fingerprint import fingerprint
from codevae.data.gaps import remove, split
from codevae.data.guess import modalities
from codevae.data.multiple_features import multiple_features
from codevae.data.schema import Schema, Tables
from codevae.data.tables import read_tables, write_table

__all__ = ["modalities", "multiple_features", "read_tables", "remove", "split", "Schema", "Tables", "write_table", "fingerprint"]
