"""The benchmark: what the memory costs the replies, measured on real servers.

    python3 tests/bench/run.py

The rows run on a real AstrBot; a link with a fixed round-trip time and TLS lies between it and a
real Hindsight.

Modules:
    run: the command.
    options: what is measured and how thoroughly.
    figures: measured values, their targets, and the numbers in between.
    report: the table and the JSON file.
    line: the far way to Hindsight.
    world: the servers that the rows share.
    chat: one message and how long its parts took.
    turns, outage, crowd: the rows on a real AstrBot.
    local: the rows that need no server; they measure the processes below.
    outbox_probe, state_probe: a process that measures itself.
    process: CPU time and memory of a process.
    suite: the rows one after the other.
    official_plugin: a throw-away plugin that uses Hindsight's own client, for comparison.
"""
