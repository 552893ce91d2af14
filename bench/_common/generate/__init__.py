"""What the reach figures of generation are measured with: a load generator, the services under test, the arithmetic."""
