"""The joint problem of all tasks over multisets of task states: counted, numbered, swept."""
