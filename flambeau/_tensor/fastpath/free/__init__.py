"""Known calls of any number of rows: one entry for shapes that differ in their first extents."""
