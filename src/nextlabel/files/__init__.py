"""The one reader of tables, and the one writer.

================= ===================================================================================
module            what it does
================= ===================================================================================
``tables``        a file's format and encoding, or a data frame: columns and rows in batches
``columns``       which columns hold task, worker, label and times; names, codes, numbers and moments
``labels``        recorded labels, the truth about tasks, results
``label_studio``  exports of Label Studio
``tasks``         the tasks of a campaign, one by one in bounded memory
``predictions``   what a model says about tasks
``write``         CSV files, whole or not at all
================= ===================================================================================
"""
