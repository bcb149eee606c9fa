"""The vector port: dense search within a scope."""
