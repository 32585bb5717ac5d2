"""The test suite as a whole: what `tests/run.py` runs and how it counts.

Modules:
    jobs: runs tests in processes of their own, watches the time and counts.
    checks: lint, format, types and duplicates.
    main: puts it together.
"""
