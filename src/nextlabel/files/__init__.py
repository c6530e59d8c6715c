"""The one reader of tables, and the one writer.

====================== =====================================================================================
module                 what it does
====================== =====================================================================================
``open_table``         a file's format, and its columns and rows in batches
``encoding``           UTF-8, UTF-16, Windows-1252 or Latin-1
``delimited``          CSV and its kin: delimiter, blank rows, empty columns
``json_values``        JSON lists and JSON lines, value by value
``frames``             Parquet and data frames
``columns``            which columns hold task, worker, label and times
``labels``, ``gold``   recorded labels and the truth about tasks
``label_studio``       exports of Label Studio
``tasks``              the tasks of a campaign, one by one in bounded memory
``report``             what was met and left out
``write``              CSV files, whole or not at all
====================== =====================================================================================
"""
