"""Frames of WebSockets, written to a client without waiting for it.

`wire` writes them, `writer` keeps the limits for unread bytes, and `close_codes` defines the reasons for
closing a socket.
"""
