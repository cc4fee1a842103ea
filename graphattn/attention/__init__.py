"""Masked attention: what (scores), who (an adjacency), how (backends), and the layer made of them."""
