"""The tiny policy's tokenizer: byte-level BPE learnt from what the agent reads and writes.

Words of goals and screens become one token each, digits stay single, and the fixed pieces of
an action are one token, so that a step costs about twenty tokens. Any text can still be
encoded, byte by byte. It is no general tokenizer: its merges know the scripted phone only.
"""

from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD = "<|endoftext|>"
END = "<|im_end|>"
# The control tokens of the Qwen-VL family; text from outside never encodes to them.
SPECIAL = (
    PAD,
    "<|im_start|>",
    END,
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|box_start|>",
    "<|box_end|>",
)
TAGS = ("<think>", "</think>", "<call_wm>", "</call_wm>")


def build(texts: Iterable[str], phrases: Sequence[str], size: int) -> PreTrainedTokenizerFast:
    """Train on `texts`; each of `phrases` becomes one token. `size` bounds the BPE part."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(SPECIAL),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (*TAGS, *phrases)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        clean_up_tokenization_spaces=False,
    )
