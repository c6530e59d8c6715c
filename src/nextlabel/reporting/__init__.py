"""How results are shown: the report and its renderers, the style of figures, and manifests."""
