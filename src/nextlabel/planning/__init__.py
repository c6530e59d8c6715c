"""What a requester asks before spending: how many labels, what they buy, and where to stop."""
