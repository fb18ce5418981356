"""Browser tools and actions, on Chromium through Playwright."""
