"""The wallet's part of a serving process: reads, notifications, periodic clean-up."""
