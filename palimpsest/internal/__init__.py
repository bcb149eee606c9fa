"""What only the services and the gateway use."""
