"""WM-R1's shared library and client: domain types, ports, adapters and the CLI."""

__version__ = "0.1.0"
