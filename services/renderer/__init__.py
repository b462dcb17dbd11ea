"""The renderer service: HTML in, pixels out, in a pool of hardened browser pages."""
