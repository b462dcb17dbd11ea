"""Turns to token ids and back, for the chat format of the Qwen-VL families.

Framing is concatenative: every turn is encoded on its own and joined by token ids, so the
prompt of a continued thought starts with exactly the ids of the earlier prompt and what was
generated after it. It is not a chat template and knows no tool or system defaults.
"""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer

from wmkit.domain.errors import BadCheckpoint, InvalidRequest
from wmkit.domain.generation import Picture, Text, Tokens, Turn

FRAMING = "chatml-1"
"""Names the framing below; part of the processor digest."""

TURN_START, TURN_END = "<|im_start|>", "<|im_end|>"
VISION_START, VISION_END, IMAGE_PAD = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"
CONTROL = (TURN_START, TURN_END, VISION_START, VISION_END, IMAGE_PAD)


class ChatEncoder:
    """Encodes turns and decodes generated ids with a byte-level BPE tokenizer.

    `tokenizer` is a `transformers` fast tokenizer, `vocabulary` the model's number of output
    rows. Raises BadCheckpoint when the tokenizer is not byte-level, has more entries than the
    model, lacks one of the control tokens, or lets plain text produce one.
    """

    def __init__(self, tokenizer: Any, vocabulary: int) -> None:
        # A copy of our own: whether special tokens are recognised is state of the tokenizer.
        own = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        own.encode_special_tokens = True
        own.no_truncation()
        own.no_padding()
        self._tokenizer = own
        self.specification: str = own.to_str()
        _require_byte_level(self.specification)
        found = {token: own.token_to_id(token) for token in CONTROL}
        ids = {token: i for token, i in found.items() if i is not None}
        absent = [token for token in CONTROL if token not in ids]
        if absent:
            raise BadCheckpoint(f"the tokenizer has no {', '.join(absent)} token")
        leaking = [token for token, i in ids.items() if i in self.text_ids(token)]
        if leaking:
            raise BadCheckpoint(
                f"the tokenizer reads {', '.join(leaking)} in plain text as a control token; "
                'mark it "special" in tokenizer.json'
            )
        self.turn_start_id: int = ids[TURN_START]
        self.turn_end_id: int = ids[TURN_END]
        self.vision_start_id: int = ids[VISION_START]
        self.vision_end_id: int = ids[VISION_END]
        self.image_id: int = ids[IMAGE_PAD]
        self.vocabulary = vocabulary
        size = own.get_vocab_size(with_added_tokens=True)
        if size > vocabulary:
            raise BadCheckpoint(f"the tokenizer has {size} tokens, the model only {vocabulary}")
        self._bytes = _TokenBytes(own, size)
        self._header = lru_cache(maxsize=8)(
            lambda role: [self.turn_start_id, *self.text_ids(role + "\n")]
        )
        self._newline = self.text_ids("\n")

    def text_ids(self, text: str) -> list[int]:
        """Ids of plain text; a control token's name in it comes out as ordinary bytes."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode(
        self, turns: Sequence[Turn], image_tokens: Sequence[int], *, reply: bool = True
    ) -> list[int]:
        """Ids of `turns`, followed by the opening of the assistant's reply when `reply`.

        `image_tokens[i]` is the number of placeholders of the i-th picture. Raises
        InvalidRequest for token ids that this model cannot have generated, and ValueError
        when the pictures are not as many as `image_tokens`.
        """
        counts = iter(image_tokens)
        ids: list[int] = []
        for i, turn in enumerate(turns):
            ids += self._header(turn.role)
            for j, part in enumerate(turn.parts):
                match part:
                    case Text(text):
                        ids += self.text_ids(text)
                    case Picture():
                        count = next(counts, None)
                        if count is None:
                            raise ValueError("more pictures than image token counts")
                        ids.append(self.vision_start_id)
                        ids += [self.image_id] * count
                        ids.append(self.vision_end_id)
                    case Tokens(tokens):
                        self._check(tokens, f"turns[{i}].parts[{j}].tokens")
                        ids += tokens
            if not (
                turn.parts and isinstance(turn.parts[-1], Tokens) and ids[-1] == self.turn_end_id
            ):
                ids.append(self.turn_end_id)
            ids += self._newline
        if next(counts, None) is not None:
            raise ValueError("more image token counts than pictures")
        if reply:
            ids += self._header("assistant")
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that one token stands for; a whole character may need several tokens."""
        return self._bytes[token_id]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of `ids`, control tokens spelled out, broken UTF-8 replaced."""
        return b"".join(self._bytes[i] for i in ids).decode("utf-8", errors="replace")

    def _check(self, tokens: Sequence[int], field: str) -> None:
        for token in tokens:
            if not 0 <= token < self.vocabulary:
                raise InvalidRequest(f"token id {token} is not in the vocabulary", field=field)
            if token == self.image_id:
                raise InvalidRequest(
                    "generated tokens cannot hold an image placeholder", field=field
                )


class _TokenBytes:
    """Token id to bytes, from the byte-level alphabet of GPT-2."""

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        alphabet = _byte_alphabet()
        added = tokenizer.get_added_tokens_decoder()
        self._table: list[bytes] = []
        for i in range(size):
            token = tokenizer.id_to_token(i)
            if token is None:
                self._table.append(b"")
            elif i in added:
                self._table.append(token.encode())
            else:
                self._table.append(bytes(alphabet[c] for c in token))

    def __getitem__(self, token_id: int) -> bytes:
        # A checkpoint may have more embedding rows than its tokenizer has entries.
        return self._table[token_id] if token_id < len(self._table) else b""


def _byte_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in a byte-level vocabulary.

    Printable Latin-1 bytes stand for themselves, the other 68 for U+0100 onwards in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + n): b for n, b in enumerate(others)}


def _require_byte_level(specification: str) -> None:
    decoder = json.loads(specification).get("decoder") or {}
    if "ByteLevel" not in json.dumps(decoder):
        raise BadCheckpoint("the tokenizer is not byte-level, as those of the Qwen families are")
