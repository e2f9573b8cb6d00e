"""Pure numpy on samples: window energy, unknowns, plausibility."""
