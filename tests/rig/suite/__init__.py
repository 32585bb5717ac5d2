"""The test suite as a whole: what `tests/run.py` runs and how it counts.

Modules:
    counts: how many tests passed, failed and were skipped.
    worker: runs some tests in a process of its own and writes down the counts.
    jobs: starts such processes, watches the time, shows the output.
    checks: lint, format, types and duplicates.
    main: puts it together.
"""
