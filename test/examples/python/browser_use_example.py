# browser-use on a session: python browser_use_example.py <url> <key> <page>
import asyncio
import sys

from browser_session_service.service import AsyncService
from browser_use import Agent, Browser
from scripted_model import ScriptedModel


async def main(url: str, api_key: str, page: str) -> None:
    async with AsyncService(url, api_key) as service:
        async with service.session(session_name="browser-use", duration="30m") as session:
            browser = Browser(cdp_url=session.cdp_url, keep_alive=True)
            # In place of the script: ChatOpenAI(model="…"), or another model of browser_use.
            model = ScriptedModel(page=page, button="Send")
            agent = Agent("Send the form", model, browser=browser, use_vision=False, use_judge=False)
            history = await agent.run(max_steps=4)
            shown = await browser.must_get_current_page()
            print(history.final_result(), "-", await shown.evaluate("() => document.title"))
            await browser.stop()


asyncio.run(main(*sys.argv[1:]))
