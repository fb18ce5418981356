"""Operations on one page: navigate, locate an element, click, type, take a screenshot."""
