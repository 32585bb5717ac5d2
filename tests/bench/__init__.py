"""The benchmarks: what the memory costs the replies, and what it brings, on real servers.

    python3 tests/bench/run.py
    python3 tests/bench/recall.py

The rows of the first run on a real AstrBot; a link with a fixed round-trip time and TLS lies
between it and a real Hindsight.

Modules:
    run: the command.
    options: what is measured and how thoroughly.
    figures: measured values, their targets, and the numbers in between.
    report: the table and the JSON file.
    line: the far way to Hindsight.
    world: the servers that the rows share.
    chat: one message and how long its parts took.
    turns, outage, crowd, listening: the rows on a real AstrBot.
    flood: many messages a second in a group, and which of them are kept.
    local: the rows that need no server; they measure the processes below.
    outbox_probe, state_probe: a process that measures itself.
    process: CPU time and memory of a process.
    suite: the rows one after the other.
    recall: the other command: whether the model gets to read what a question needs.
    dialogue: what is said and asked there.
    player: the plugin there; it alone knows the plugin's modules.
    evidence: what counts as found, and real tokens.
    recall_run: plays, asks, and compares with one bare recall.
    recall_report: its tables and its JSON file.
    official_plugin: a throw-away plugin that uses Hindsight's own client, for comparison.
"""
