"""The one reader of tables: CSV, TSV, JSON lines, Parquet and Label Studio exports."""
