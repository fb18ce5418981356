"""Read a page: wait until it has loaded; its content, its picture, what it does by itself."""
