"""The project's benchmarks: `make bench`, explained in docs/benchmarks.md."""
