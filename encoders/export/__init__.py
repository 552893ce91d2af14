"""From torch weights to an ONNX file that computes the same; needs the extra `export`, the service never does."""
