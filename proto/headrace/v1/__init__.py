"""Generated stubs of the wire, checked in; `make proto` writes them."""
