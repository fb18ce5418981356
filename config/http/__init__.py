"""HTTP besides the views: compression, static files, pages of other origins."""
