"""Pictures of programs that run in several processes: joined traces, overlap of reductions, bubbles of pipelines."""
