"""Whether operators are being run in any way but plainly: forward mode now; batching and tracing later."""

from __future__ import annotations

#: [how many such ways are on, over all threads]: a list, since every operator reads it and
#: a list's item is the quickest thing to read that can also be changed
special = [0]
