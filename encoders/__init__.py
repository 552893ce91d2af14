"""Text to tensors on ONNX Runtime, and the scheduler that is the only bridge from async callers to sync engines."""
