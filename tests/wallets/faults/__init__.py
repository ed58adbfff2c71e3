"""Failing parts of the service, and malicious dapps, with two web processes."""
