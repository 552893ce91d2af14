"""The service: the request pipeline, its caches, context assembly, generation, security, telemetry, server and CLI."""
