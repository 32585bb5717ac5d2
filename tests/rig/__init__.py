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
    hindsight: one Hindsight server with its own database.
    hindsight_model: the model that stands behind that server.
    postgres: the database that stands behind that server.
    bank: a look into a memory bank, straight at the server.
    proxy: a recording HTTP proxy.
    faults: what that proxy can act out.
    link: a TCP forwarder with a fixed round-trip time.
    certificates: a self-signed certificate for loopback.
    running: what starts and ends as a whole.
    signals: ends in order when the process is told to stop.
    stack: all of it together, for the live tests.
    dify: a stub of Dify, a runner that takes no memory.
    market, market_load: load the plugin as the plugin market's check does.
    chromium: find a browser.
    browser: AstrBot's web interface in a browser.
"""
