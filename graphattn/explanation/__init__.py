"""What a model attended to, and pictures of it."""
