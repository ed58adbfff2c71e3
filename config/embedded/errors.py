"""What can go wrong around the embedded services."""


class ServiceError(Exception):
    """Raised when a service can't be started or stopped; the text says what to do."""
