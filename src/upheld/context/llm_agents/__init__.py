"""The two agents on language models: conversations with tools, in a folder each may not leave."""

from __future__ import annotations

from upheld.context.llm_agents.base_agent import LLMBaseAgent
from upheld.context.llm_agents.meta_agent import LLMMetaAgent

__all__ = ["LLMBaseAgent", "LLMMetaAgent"]
