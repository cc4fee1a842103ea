"""Training a network: settings, losses, the loop, checkpoints, metrics."""
