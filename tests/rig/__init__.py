"""The test rig: real servers on loopback, and what the tests need to talk to them.

Modules:
    venvs: find a Python, make the virtual environments that the rig runs in.
    ports: free loopback ports.
    polling: wait for something with a deadline, synchronously or in an event loop.
    processes: start, stop and reap subprocesses.
    model: an OpenAI-compatible chat model that says what a test wants.
    onebot: a OneBot v11 client, that is, the QQ side of AstrBot.
    dashboard: a client of AstrBot's web interface.
    astrbot: one AstrBot with its own root folder and process.
    hindsight: one Hindsight server with its own database, and a client for looking into a bank.
    hindsight_model: the model that stands behind that server.
    proxy: a recording and fault-injecting HTTP proxy.
    link: a TCP forwarder with a fixed round-trip time.
"""
