"""The parts of `bench.prefix`: what is read, a server's prefix cache, the arms, and the real model."""
