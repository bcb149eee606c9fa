"""What the gateway keeps: tenants, keys, graphs, requests, jobs, and the tables of the ledger."""
