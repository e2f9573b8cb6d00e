"""Tell running out of memory from other failures."""

from __future__ import annotations

_PHRASES = (
    "out of memory",
    "cudnn_status_alloc_failed",
    "cublas_status_alloc_failed",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate",
)


def says_out_of_memory(text: str) -> bool:
    """Whether a line of a log says that memory ran out."""
    lowered = text.lower()
    return "memoryerror" in lowered or any(phrase in lowered for phrase in _PHRASES)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception, or what caused it, says that memory ran out (torch's class, or one of its messages)."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or type(seen).__name__ == "OutOfMemoryError":
            return True
        if isinstance(seen, RuntimeError) and says_out_of_memory(str(seen)):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
