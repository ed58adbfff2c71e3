"""Management commands of the whole project."""
