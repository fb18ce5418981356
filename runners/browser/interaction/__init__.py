"""Operations on one page: open and read it, locate an element, click, type, take a screenshot."""
