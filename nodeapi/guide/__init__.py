"""The documentation at `/docs/`, made from the code and the database where facts are."""
