"""Benchmarks: the paper's evaluation as seeded workloads, beside two baselines of the same run.

Run:     python -m tests.bench SCENARIO [--json] [--quick] [--plot FILE.png]
"""
