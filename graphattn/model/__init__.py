"""Networks made of attention: block, readout, network, and their settings."""
