"""Tests of graphs, fusion, schedules and plans."""
