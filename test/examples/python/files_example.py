# A download by Playwright for Python, got from the service: python files_example.py <url> <key>
import sys
import time

from browser_session_service.api.files import get_session_file
from browser_session_service.models import Problem
from browser_session_service.service import Service, checked
from playwright.sync_api import sync_playwright


def read_file(service, session, name):
    """The file's bytes. The service has it a moment after the browser."""
    while True:
        answer = get_session_file.sync_detailed(client=service.client, id=session.id, name=name)
        if not (isinstance(answer.parsed, Problem) and answer.parsed.error == "FILE_NOT_FOUND"):
            return checked(answer).payload.read()
        time.sleep(0.25)


url, api_key = sys.argv[1:]
with Service(url, api_key) as service, sync_playwright() as playwright:
    with service.session(session_name="files-by-python", duration="5m") as session:
        browser = playwright.chromium.connect_over_cdp(session.cdp_url)
        page = browser.contexts[0].pages[0]
        page.set_content('<a download="ann.txt" href="data:,Hello Ann">Save</a>')
        with page.expect_download() as expected:
            page.click("a")
        download = expected.value
        if failure := download.failure():  # waits until the browser has all of it
            raise SystemExit(f"{download.suggested_filename}: {failure}")
        # In place of download.save_as, which looks for the file on this machine.
        content = read_file(service, session, download.suggested_filename)
        print(download.suggested_filename, content.decode())
        browser.close()
