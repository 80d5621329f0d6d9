"""Views: their position in the base, their histories after writes, and those without a history of their own."""
