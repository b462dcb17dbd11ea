"""What holds for every test, however the tests were started."""

import signal

# A shell starts background jobs with SIGINT ignored, and every child inherits that; the tests
# send it to processes that they start, which must see it as a person's Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
