"""What `bench.encode` measures, one question a module."""
