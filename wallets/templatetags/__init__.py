"""What templates may ask."""
