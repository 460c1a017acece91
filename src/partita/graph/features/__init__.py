"""Tables of factors from weights that factors of a type share."""
