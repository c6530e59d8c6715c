"""How results are shown: the style of figures, HTML pages, manifests, and numbers in prose."""
