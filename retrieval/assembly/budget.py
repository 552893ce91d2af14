"""How many tokens of context fit between the instructions, the question and the answer.

The question is never cut: a prompt that has lost its question gets an answer to nothing.
"""

from __future__ import annotations

from encoders.types import TokenCounter
from retrieval.assembly.template import CHAT_TEMPLATE_MARGIN_TOKENS, user_message
from retrieval.errors import InvalidRequest

LEAST_CONTEXT_TOKENS = 16
"""Below this no passage fits beside its citation mark."""


def generation_budget(
    window_tokens: int,
    instructions: str,
    question: str,
    max_output_tokens: int,
    counter: TokenCounter,
    asked_context_tokens: int,
) -> int:
    """Returns the tokens of context that fit into the model's window, at most `asked_context_tokens`.

    Raises:
        InvalidRequest: the output leaves no room for any question, or the question none for context.
    """
    fixed = counter.count(instructions) + counter.count(user_message("-", "")) + CHAT_TEMPLATE_MARGIN_TOKENS
    room = window_tokens - fixed - LEAST_CONTEXT_TOKENS
    if max_output_tokens >= room:
        raise InvalidRequest(
            "max_output_tokens",
            f"at most {max(0, room - 1)} tokens",
            f"{max_output_tokens} tokens of output leave no room for a question in a window of {window_tokens} tokens; "
            "ask for fewer",
        )
    question_tokens = counter.count(question)
    question_room = room - max_output_tokens
    if question_tokens > question_room:
        raise InvalidRequest(
            "query",
            f"at most {question_room} tokens",
            f"the question has {question_tokens} tokens, {question_room} fit beside the answer's {max_output_tokens}; "
            "shorten it or ask for fewer output tokens",
        )
    return min(asked_context_tokens, question_room - question_tokens + LEAST_CONTEXT_TOKENS)
