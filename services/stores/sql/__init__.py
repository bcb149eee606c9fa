"""What the SQL stores share: engines, transactions, rows, and errors of drivers."""
