"""What a requester asks before spending: how many labels, what they buy, and whether it would have helped last time."""
