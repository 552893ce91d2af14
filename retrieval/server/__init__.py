"""The gRPC server: what speaks protobuf, and the composition root that constructs everything else."""
