"""A module that can't be imported by a fork server, because it starts a thread."""

from threading import Event, Thread

Thread(target=Event().wait, daemon=True).start()
