"""Stands where a language model would, so that the example needs no account."""

import re
from typing import Any

from browser_use.llm.views import ChatInvokeCompletion


class ScriptedModel:
    """Not a language model: opens a page, clicks its button of that name, and is done.

    Like a model it gets the state of the page as text, and answers with actions of browser-use.
    """

    model = "scripted"
    provider = "scripted"
    name = "scripted"
    model_name = "scripted"
    _verified_api_keys = True

    def __init__(self, page: str, button: str) -> None:
        self.page = page
        self.button = button
        self.steps = 0

    async def ainvoke(
        self, messages: list[Any], output_format: Any = None, **_: Any
    ) -> ChatInvokeCompletion[Any]:
        self.steps += 1
        state = messages[-1].text
        if self.steps == 1:
            action: dict[str, Any] = {"navigate": {"url": self.page}}
        elif self.steps == 2:
            found = re.search(rf"\[(\d+)\]<button[^>]*/?>\s*{self.button}", state)
            if found is None:
                raise LookupError(f"no button {self.button} in: {state}")
            action = {"click": {"index": int(found[1])}}
        else:
            action = {"done": {"text": "done", "success": True}}
        answer = {
            "evaluation_previous_goal": "",
            "memory": "",
            "next_goal": "",
            "action": [action],
        }
        return ChatInvokeCompletion(completion=output_format(**answer), usage=None)
