"""Methods of the tensor that are no operators, and the installation of all methods."""
