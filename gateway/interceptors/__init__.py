"""What every call passes before its handler, in one order (gateway/interceptors/order.py)."""
