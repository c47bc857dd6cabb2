"""What a page logs and loads, by WebDriver BiDi: python listen.py http://user:KEY@host/wd/hub PAGE"""

import sys
import time

from selenium import webdriver

hub, page = sys.argv[1:]
options = webdriver.ChromeOptions()
options.enable_bidi = True
options.set_capability("bss:options", {"session_name": "by-bidi"})
driver = webdriver.Remote(command_executor=hub, options=options)
messages, requests = [], []


def on_request(request):
    requests.append(request.url)
    request.continue_request()


try:
    driver.script.add_console_message_handler(lambda message: messages.append(message.text))
    driver.network.add_request_handler("before_request", on_request)
    driver.get(page)
    driver.execute_script("console.log('Hello from ' + document.title)")
    waits_until = time.monotonic() + 30
    while not messages and time.monotonic() < waits_until:
        time.sleep(0.05)
    print(page in requests)
    print(*messages)
finally:
    driver.quit()
