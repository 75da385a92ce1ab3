"""Values in a log as Python shows them."""

import ast
import warnings

__all__ = ["literal", "parsed"]


def parsed(text: str) -> ast.expr:
    """The expression that a text is. Raises SyntaxError or ValueError. Nothing of it is run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how the text is written
        return ast.parse(text, mode="eval").body


def literal(text: str) -> object:
    """The constant that a text is, None if it is something else."""
    try:
        expression = parsed(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return expression.value if isinstance(expression, ast.Constant) else None
