"""The command `headrace`: one group of commands a file, each a thin shell around the client or the composition root."""
