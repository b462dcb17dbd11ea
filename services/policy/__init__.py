"""Multimodal chat in, sampled tokens with log-probabilities and the policy version out."""
