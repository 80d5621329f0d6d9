"""Process groups: made and ended in `making`, of `backends`; `queries` is what programs ask about them."""
