"""The stages that are more than a call: typed values in, typed values out, and none knows of another."""
