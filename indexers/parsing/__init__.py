"""From files to canonical texts: one module a format, and a dispatcher that looks at names and first bytes."""
