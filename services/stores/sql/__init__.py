"""What the SQL stores share: engines, tables, migrations."""
