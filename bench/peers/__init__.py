"""The parts of bench/compare_peers."""
