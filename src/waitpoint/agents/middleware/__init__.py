"""Middleware of agents: what is asked, retried, limited and refused around their steps."""
