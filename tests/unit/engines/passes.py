"""A state over blocks, pass after pass, merged in the order that is least like the one they came in."""


def finished_over(state, blocks):
    """What a state finishes with: every block into a state of its own, merged backwards, as often as asked."""
    while True:
        parts = [state.fresh() for _ in blocks]
        for part, block in zip(parts, blocks, strict=True):
            part.absorb(block)
        total = parts[-1]
        for part in reversed(parts[:-1]):
            total.merge(part)
        following = total.advance()
        if following is None:
            return total.finish()
        state = following
