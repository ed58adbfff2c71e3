"""What searches, filters and subscriptions of logs share: the filter, and index keys."""
