# A session driven by Playwright for Python: python playwright_example.py <url> <key>
import sys

from browser_session_service.service import Service
from playwright.sync_api import sync_playwright

url, api_key = sys.argv[1:]
with Service(url, api_key) as service, sync_playwright() as playwright:
    with service.session(session_name="by-python", duration="5m") as session:
        browser = playwright.chromium.connect_over_cdp(session.cdp_url)
        page = browser.contexts[0].pages[0]
        page.goto("data:text/html,<title>Hello</title><input id=name>")
        page.fill("#name", "Ada")
        print(page.title(), page.input_value("#name"), "from", session.session_name)
        browser.close()
