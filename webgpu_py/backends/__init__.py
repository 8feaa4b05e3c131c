"""Executors of plans beside the browser: NumPy, and what tests stand in with."""
