"""Local previews of a project: dev server, WebGAL's preview server, and the page opened there."""
