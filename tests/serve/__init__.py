"""The server: its configuration, security, routes and streams."""
