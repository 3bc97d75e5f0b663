"""Whose cancellation an asyncio.CancelledError tells."""
import asyncio


def current_task_is_cancelled() -> bool:
    """False: the call was cancelled from elsewhere, and its awaiter was not."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
