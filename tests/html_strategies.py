"""HTML that nobody would write, from hypothesis: odd nesting, odd tags, odd styles, cut short.

Documents are made of tokens rather than of trees, so that most of them are not well formed.
"""

from hypothesis import strategies as st


def _one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


_TAGS = _one_of(
    "p div span b a i svg g rect circle text use image foreignObject math mi annotation-xml table "
    "tr td caption colgroup form input select option textarea button label fieldset legend iframe "
    "frame frameset object embed script style template noscript title meta base link body html "
    "head h1 ul ol li dl dt img picture source video audio track canvas map area marquee details "
    "summary dialog ruby rt plaintext xmp listing br hr pre wbr slot progress meter center "
    "font x-custom"
)
_VALUES = st.one_of(
    _one_of(
        "0 1e9 -1 100% true #x render-target url(#x) data:,x //x/ http://127.0.0.1:9/ text/html "
        "file:///etc/hostname javascript:alert(1) on refresh content-security-policy"
    ),
    st.text(max_size=8),
)
_PROPERTIES = _one_of(
    "display position float width height margin padding transform filter opacity background color "
    "font font-size line-height letter-spacing writing-mode direction z-index overflow columns "
    "flex grid contain content animation transition clip-path mask mix-blend-mode cursor zoom "
    "border border-radius box-shadow list-style white-space all --v"
)
_WORDS = _one_of(
    "none 0 1px -9999px 99999px 100vmax 1e38px 50% auto inherit initial block inline flex grid "
    "table contents absolute fixed sticky hidden scroll vertical-rl rtl red transparent blur(9px) "
    "rotate(45deg) scale(9) url(http://127.0.0.1:9/a) url(data:,) var(--v) calc(1px/0) move "
    "counter(c) attr(id) !important"
)
_DECLARATIONS = st.lists(
    st.builds("{}:{}".format, _PROPERTIES, st.lists(_WORDS, min_size=1, max_size=3).map(" ".join)),
    max_size=4,
).map(";".join)
_NAMES = _one_of(
    "id class src href srcset data poster action onclick onload onerror role data-id type value "
    "data-clickable aria-label name http-equiv content dir lang hidden autofocus contenteditable "
    "tabindex disabled checked colspan width height viewBox d points"
)
_ATTRIBUTES = st.one_of(
    st.builds('style="{}"'.format, _DECLARATIONS),
    st.builds('{}="{}{}'.format, _NAMES, _VALUES, st.sampled_from(['"', '"', "", "'"])),
)
_OPEN = st.builds(
    "<{} {}{}".format,
    _TAGS,
    st.lists(_ATTRIBUTES, max_size=3).map(" ".join),
    st.sampled_from([">", ">", ">", "/>", "", "<"]),
)
_RULES = st.builds(
    "<style>{}{{{}}}@keyframes move{{from{{left:0}}to{{left:9px}}}}</style>".format,
    _one_of("* body p::before :root div>* :has(p) ::marker @page"),
    _DECLARATIONS,
)
_PIECES = st.sampled_from(
    ["<!--", "-->", "<![CDATA[", "]]>", "&#0;", "&notanentity;", "\x00", "<?xml ?>", "</html>",
     "<div id=render-target>", "<!DOCTYPE html>", "<script>while(1);</script>"]
)  # fmt: skip
_TOKENS = st.one_of(
    _OPEN, _OPEN, st.builds("</{}>".format, _TAGS), st.text(max_size=12), _RULES, _PIECES
)

odd_documents: st.SearchStrategy[str] = st.lists(_TOKENS, min_size=1, max_size=25).map("".join)
