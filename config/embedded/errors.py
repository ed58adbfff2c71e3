"""Errors of the embedded services."""


class ServiceError(Exception):
    """Raised when a service can't be started or stopped.

    The message explains how to solve the problem.
    """
