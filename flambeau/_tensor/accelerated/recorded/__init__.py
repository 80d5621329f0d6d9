"""Calls on a device that come again and again: tables of recorded launches and graphs (record 112)."""
