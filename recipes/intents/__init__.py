"""Purchase-intent knowledge: why people buy which product, read from files, checked against leaks, made into pairs."""
