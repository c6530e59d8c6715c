"""What labels teach about workers: channels, streamed and refitted inference, the crowd's prior."""
