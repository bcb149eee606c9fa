"""Commands of `palimpsest-admin`, each a module; gateway/admin.py registers them."""
