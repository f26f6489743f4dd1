"""What cases found: one JSON file a case, and all of them together."""
