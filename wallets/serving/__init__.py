"""What a serving process holds for the wallet: reads, notifications, periodic clean-up."""
