"""The forty tasks, by kind: each function adds its pages to a site and says what is asked."""
