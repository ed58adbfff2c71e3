"""PostgreSQL and Redis from Python wheels, for machines that have neither.

Both store their data under VAR_DIR and listen on unix sockets only (in a private folder
under /tmp if the path under VAR_DIR is too long for a socket). `config.services` is the
interface.

Every process that uses the services holds a shared lock. The first one starts them, and the
last one stops them. A killed process loses its lock, so nothing has to be cleaned up.
`serve` checks both services four times a second and restarts one that has died, under
the lock that serializes starting and stopping.

PostgreSQL refuses to run as root, so root starts it as `nobody` with the one capability
that can pass through folders such as /root. Other processes of `nobody` could then access
the data: a machine with such processes should set DATABASE_URL or run the service as an
ordinary user.
"""
