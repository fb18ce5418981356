"""Outgoing connections: URL checks, the egress policy and the SOCKS proxy of browsers."""
