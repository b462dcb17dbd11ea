"""What the learned world models share: cues, sentences, prompts, extraction, page states.

Everything here is pure but for reading prompt files; models are asked by `engine`.
"""
