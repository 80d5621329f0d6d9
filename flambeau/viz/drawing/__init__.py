"""Drawings of graphs: DOT, SVG, text and a layered layout."""
