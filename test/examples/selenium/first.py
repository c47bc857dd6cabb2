"""Selenium's first script on a session: python first.py http://user:KEY@host/wd/hub PAGE"""

import sys

from selenium import webdriver
from selenium.webdriver.common.by import By

hub, page = sys.argv[1:]
options = webdriver.ChromeOptions()
options.set_capability("bss:options", {"session_name": "by-python"})
driver = webdriver.Remote(command_executor=hub, options=options)
try:
    driver.get(page)
    print(driver.title)
    driver.implicitly_wait(10)
    driver.find_element(by=By.NAME, value="my-text").send_keys("Selenium")
    driver.find_element(by=By.CSS_SELECTOR, value="button").click()
    print(driver.find_element(by=By.ID, value="message").text)
finally:
    driver.quit()
