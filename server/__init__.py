"""Processes and connections: the layer between sockets and the ASGI application.

- `supervisor` starts worker processes on one address and replaces those that end or hang.
- `children` keeps other child processes running, and `lifeline` ends a child with its
  parent.
- `worker` is one process: uvicorn's event loop with the HTTP protocol of this package.
- `http` parses every request. A node request is passed to the application's handler as a
  `request.Request` and answered with a `request.Response`. A connection with any other
  request is handed over to uvicorn, which serves Django, pages and WebSockets.
- `turns` lets connections whose input takes long to parse take turns.
- `bounds` and `memory_bounds` hold the limits of all connections.

Imports nothing else of the project, and no Django.
"""
