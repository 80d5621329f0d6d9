"""Tracing of declarations over symbolic elements into scalar IR."""
