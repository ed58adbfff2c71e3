"""PostgreSQL and Redis out of their Python wheels, for machines that have neither.

Both live under VAR_DIR, listen on unix sockets alone, and run for as long as some
process of the project uses them. `config.services` is the way in.
"""
