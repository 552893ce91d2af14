"""What was computed before: keys from `Scope`, values as bytes with a format number, bounded in bytes."""
