"""What pipelines of files and functions consist of."""
