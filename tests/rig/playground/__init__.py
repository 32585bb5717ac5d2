"""The playground: a scripted conversation with the real servers, and a chat for whoever watches.

Modules:
    cast: who talks where, and what the script has them say and ask.
    friend: the chat model, which knows nothing but the memory block it is given.
    scene: the servers, and one turn of talk with the bot.
    show: plays the script and judges it.
    talk: lets the person at the terminal go on.
    words: what the screen says, in either language.
    main: puts it together.
"""
