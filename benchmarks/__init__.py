"""Accuracy and speed, beside peers and baselines."""
