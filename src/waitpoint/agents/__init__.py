"""Agents whose tool calls wait for a decision."""
