"""The price index of a task state: its table, the roots it is made of, and whether it is monotone in the price."""
