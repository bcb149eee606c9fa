"""What calls do, without transport: from a scope and a public request to a public response."""
