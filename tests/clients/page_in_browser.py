#!/usr/bin/env python3
"""The page at "/" in headless Chromium: a chat, the table of requests, and a second answer that is stopped.

usage: page_in_browser.py URL SCREENSHOT.png     (http://127.0.0.1:8000/)
Needs the package playwright and Chromium. Exits with 1 if anything is not shown, or the browser reports an error.
"""
import shutil
import sys

from playwright.sync_api import expect, sync_playwright

PATIENCE_MS = 60_000


def show_and_stop_an_answer(page, screenshot):
    page.fill("#words", "Write a long story about a dragon.")
    page.click("#send")
    expect(page.locator("#requests tr")).to_have_count(1, timeout=PATIENCE_MS)
    page.screenshot(path=screenshot)
    page.click("#send")  # says Stop now
    expect(page.locator("#requests tr")).to_have_count(0, timeout=PATIENCE_MS)


def chat(page):
    page.fill("#temperature", "0")
    page.fill("#words", "What is the capital of France?")
    page.press("#words", "Enter")
    expect(page.locator("#talk .assistant")).to_contain_text("Paris", timeout=PATIENCE_MS)
    expect(page.locator("#send")).to_have_text("Send", timeout=PATIENCE_MS)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    chromium = shutil.which("chromium") or sys.exit("page_in_browser: no Chromium: apt-get install chromium")
    errors = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])  # root has none
        page = browser.new_page(viewport={"width": 1200, "height": 750})
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(sys.argv[1])
        chat(page)
        show_and_stop_an_answer(page, sys.argv[2])
        browser.close()
    if errors:
        sys.exit(f"page_in_browser: the browser reports {errors}")
    print(f"page: a chat, its requests and a stopped answer are shown; {sys.argv[2]}")


if __name__ == "__main__":
    main()
