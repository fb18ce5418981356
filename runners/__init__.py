"""Tools and where they run: browser, workspace, language models, docker-runner, targets."""
