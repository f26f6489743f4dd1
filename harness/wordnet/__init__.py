"""The WordNet 3.0 noun graph as arrays, and how similar its concepts are."""
