"""Collectives on the CPU: `process_group` has them, `backend` what they run on, `checks` the checks of arguments."""
