"""Array namespaces: what an operator's lines run on."""
