"""Options of experiments, which exist for programs that set them."""

from __future__ import annotations

translation_validation = False
translation_validation_timeout = 600000
no_data_dependent_graph_break = False
print_specializations = False
extended_debug_cpp = False
validate_shape_env_version_key = False
backed_size_oblivious = False
use_duck_shape = True
meta_nonzero_assume_all_nonzero = False
enrich_profiler_metadata = False
