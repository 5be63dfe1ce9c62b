"""The inbox in a real browser: by keyboard and by hand, with script and without, at desktop and phone width."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser import desk

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
KEPT = ("list-desktop-light", "list-desktop-dark", "card-desktop-light", "batch-phone-dark", "list-phone-light",
        "doubt-desktop-dark", "thread-desktop-light")  # fmt: skip
PICTURES = Path(__file__).resolve().parents[2] / "docs" / "img"


async def opened(browser: Browser, address: str, viewport: dict[str, int] = DESKTOP, **more: Any) -> Page:
    """Open a page that fails the test when its script does, or when its own policy stops something."""
    context = await browser.new_context(viewport=viewport, **more)  # type: ignore[arg-type]
    page = await context.new_page()
    page.set_default_timeout(10_000)
    page.trouble = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.trouble.append(str(error)))  # type: ignore[attr-defined]
    page.on("dialog", lambda dialog: page.trouble.append(dialog.message))  # type: ignore[attr-defined]
    page.on("console", lambda said: page.trouble.append(said.text) if "Content Security" in said.text else None)  # type: ignore[attr-defined]
    await page.goto(address)
    return page


async def press(page: Page, *keys: str) -> None:
    """Press keys one after the other, each once the page listens."""
    for key in keys:
        await page.wait_for_selector("body[data-keys=ready]", state="attached")
        await page.keyboard.press(key)


async def settled(page: Page) -> None:
    """Wait until the card says that it is answered, on the page that follows an answer."""
    await page.wait_for_url("**done=1**")
    await expect(page.locator(".banner.settled")).to_be_visible()


def trouble(page: Page) -> list[str]:
    found: list[str] = page.trouble  # type: ignore[attr-defined]
    return found


# --- by keyboard ------------------------------------------------------------------------------------------------------


async def answer_by_keys(page: Page, headline: str) -> None:
    """Answer the question that is open, in the way of its kind, without touching the mouse."""
    if "send_mail" in headline:
        await press(page, "e")
        await page.keyboard.press("End")
        await page.keyboard.type("x")
        await press(page, "Control+Enter")  # shows what changes
        await expect(page.locator("#preview .line.new")).to_contain_text("ana@example.comx")
        await press(page, "Control+Enter")
    elif "3 calls" in headline:
        await press(page, "y", "n")
        await page.keyboard.type("It is the only copy")
        await press(page, "Escape")
        await page.locator(".batch .item").nth(2).focus()
        await press(page, "y", "Control+Enter")
    elif "Did this happen" in headline:
        await page.get_by_role("button", name="It did not happen").focus()
        await press(page, "Enter")
    elif "Publish" in headline or "archive" in headline:
        await press(page, "n")
    elif "review a text" in headline:
        await press(page, "y")
    elif "trip" in headline:
        await page.locator("details.way[open] textarea").first.focus()
        await page.keyboard.type("Ulm")
        await page.keyboard.press("Tab")
        await page.keyboard.type("2")
        await page.get_by_label("room").select_option(label="double")
        await press(page, "Control+Enter")
    elif "How old" in headline:
        await press(page, "r")
        await page.keyboard.type("41")
        await press(page, "Control+Enter")
    elif "browser" in headline:
        await page.locator("details.way[open] textarea").focus()
        await page.keyboard.type('"a,b"')
        await press(page, "Control+Enter")
    else:
        await press(page, "e")
        await page.keyboard.type("[1, 2]")
        await press(page, "Control+Enter")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.timeout(120)
async def test_a_person_clears_ten_questions_of_all_kinds_by_keyboard(
    browser: Browser, url: str, viewport: dict[str, int]
) -> None:
    thread = await desk.asked(url, *desk.of_all_kinds())
    page = await opened(browser, f"{url}/inbox", viewport)
    await press(page, "j", "o")
    done = []
    for n in range(10):
        headline = await page.locator("h1").inner_text()
        await answer_by_keys(page, headline)
        await settled(page)
        done.append(headline)
        if n < 9:
            await press(page, "j")
            await page.wait_for_url(lambda address: "done=1" not in address)
    assert len(set(done)) == 10
    await page.goto(f"{url}/inbox")
    await expect(page.locator(".empty")).to_contain_text("Nothing waits")
    log = await desk.log_of(url, thread)
    assert log == [
        {"type": "edit", "edited_action": {"name": "send_mail", "args": desk.MAIL_ARGS | {
            "to": ["ana@example.comx", "finance@example.com"]}}},
        {"decisions": [{"type": "approve"}, {"type": "reject", "message": "It is the only copy"}, {"type": "approve"}]},
        {"type": "not_happened"}, False, "Faster start.\nFewer bugs.", {"city": "Ulm", "nights": 2, "room": "double"}, "41",
        {"tool_call_id": "c9", "tool_result": "a,b"}, [{"type": "ignore", "args": None}], [1, 2],
    ]  # fmt: skip
    assert trouble(page) == []


async def test_keys_do_nothing_in_the_moment_after_a_card_appears(browser: Browser, url: str) -> None:
    await desk.asked(url, desk.send_mail())
    page = await opened(browser, f"{url}/inbox")
    await page.add_init_script("let t = 0; performance.now = () => t; window.after = (ms) => { t = ms; };")
    await page.goto(await page.locator("#list .row a").first.evaluate("a => a.href"))
    await page.keyboard.press("y")
    await page.evaluate("after(399)")
    await page.keyboard.press("y")
    await page.get_by_role("button", name="Approve").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Space")
    await expect(page.locator(".card")).not_to_have_attribute("aria-busy", "true")
    await page.evaluate("after(401)")
    await page.keyboard.press("y")
    await settled(page)


async def test_enter_in_a_field_never_decides_and_keys_can_be_turned_off(browser: Browser, url: str) -> None:
    await desk.asked(url, desk.plain({"question": "Which trip?"}, desk.TRIP))
    page = await opened(browser, f"{url}/inbox")
    await press(page, "o")
    await page.get_by_label("nights").fill("3")
    await page.keyboard.press("Enter")
    await page.get_by_label("city").fill("y")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Keys on").click()
    await page.get_by_role("heading", level=1).click()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_label("nights")).to_have_value("3")
    await expect(page.get_by_role("button", name="Keys off")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("button", name="Keys off")).to_be_visible()
    assert "/questions/" in page.url


async def test_a_short_reason_can_be_taken_and_changed(browser: Browser, url: str) -> None:
    thread = await desk.asked(url, desk.send_mail())
    page = await opened(browser, f"{url}/inbox")
    await press(page, "o", "n")
    await page.get_by_role("button", name="Wrong target").click()
    await page.keyboard.press("End")
    await page.keyboard.type(": ask Bo")
    await press(page, "Control+Enter")
    await settled(page)
    assert await desk.log_of(url, thread) == [{"type": "reject", "message": "Wrong target: ask Bo"}]
    assert trouble(page) == []


# --- two people -------------------------------------------------------------------------------------------------------


async def test_a_card_that_someone_else_answered_meanwhile_is_locked_and_says_so(browser: Browser, url: str) -> None:
    thread = await desk.asked(url, desk.send_mail(), desk.plain({"question": "Another?"}))
    first, second = await opened(browser, f"{url}/inbox"), await opened(browser, f"{url}/inbox")
    for page in (first, second):
        await page.locator(".row a", has_text="send_mail").click()
        await page.wait_for_selector("body[data-live]", state="attached")
    await second.locator("summary", has_text="Respond").click()
    await second.get_by_label("Answer").fill("I am still typing")
    await first.get_by_role("button", name="Approve").click()
    await settled(first)
    await expect(second.locator(".banner.settled")).to_contain_text("Approved")
    await expect(second.get_by_role("button", name="Send this answer")).to_be_disabled()
    await expect(second.get_by_label("Answer")).to_have_value("I am still typing")
    await second.goto(f"{url}/inbox")
    await expect(second.locator("#list .row").first).to_contain_text("Another?")
    await first.goto(f"{url}/inbox")
    await first.locator(".row a", has_text="Another?").click()
    await first.get_by_text("Answer with text").click()
    await first.get_by_label("Answer").fill("done")
    await first.get_by_role("button", name="Send the text").click()
    await settled(first)
    await expect(second.locator(".empty")).to_contain_text("Nothing waits")  # without a reload
    assert await desk.log_of(url, thread) == [{"type": "approve"}, "done"]


async def test_two_clicks_at_once_are_one_answer(browser: Browser, url: str) -> None:
    thread = await desk.asked(url, desk.send_mail())
    page = await opened(browser, f"{url}/inbox")
    await page.locator(".row a", has_text="send_mail").click()
    await page.get_by_role("button", name="Approve").dblclick()
    await settled(page)
    assert await desk.log_of(url, thread) == [{"type": "approve"}]


# --- without script ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_everything_can_be_answered_without_script(browser: Browser, url: str, viewport: dict[str, int]) -> None:
    thread = await desk.asked(url, desk.send_mail(), desk.files(), desk.plain({"question": "Which trip?"}, desk.TRIP))
    page = await opened(browser, f"{url}/inbox?order=oldest", viewport, java_script_enabled=False)
    await page.locator(".row a", has_text="send_mail(").click()
    await page.locator("summary", has_text="Edit").click()
    await page.get_by_role("button", name="Add an entry").click()
    await page.get_by_label("3 text").fill("third@example.com")
    await page.get_by_label("remove").first.check()
    await page.get_by_label("subject").fill("Reminder")
    await page.get_by_role("button", name="Show what changes").click()
    await expect(page.locator("#preview")).to_contain_text("Reminder")
    await page.get_by_role("button", name="Send with these changes").click()
    await settled(page)
    await page.goto(f"{url}/inbox")
    await page.locator(".row a", has_text="3 calls").click()

    for n, word in enumerate(("Approve", "Reject", "Edit")):
        await page.locator(".batch .item").nth(n).locator("label.button", has_text=word).click()
    await page.get_by_label("path").locator("visible=true").fill("NOTES.md")
    await page.get_by_role("button", name="Send 3 decisions").click()
    await page.get_by_role("button", name="Send with these changes").click()
    await settled(page)
    await page.get_by_role("link", name="Next question").click()
    await page.get_by_label("city").fill("Ulm")
    await page.get_by_label("nights").fill("many")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".error")).to_contain_text(["A whole number is wanted", "Choose one"])
    await expect(page.get_by_label("city")).to_have_value("Ulm")
    await page.get_by_label("nights").fill("2")
    await page.get_by_label("room").select_option(label="single")
    await page.get_by_role("button", name="Send").click()
    await settled(page)
    mail, decisions, trip = await desk.log_of(url, thread)
    assert mail["edited_action"]["args"] == desk.MAIL_ARGS | {
        "subject": "Reminder", "to": ["finance@example.com", "third@example.com"]
    }  # fmt: skip
    assert [each["type"] for each in decisions["decisions"]] == ["approve", "reject", "edit"]
    assert trip == {"city": "Ulm", "nights": 2, "room": "single"}


# --- hostile text -----------------------------------------------------------------------------------------------------

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'><svg/onload=alert(3)>{{7*7}}\u202egnp.exe\u200b"


async def test_text_from_agents_is_never_markup_and_never_hides(browser: Browser, url: str) -> None:
    hostile: dict[str, Any] = {"q": HOSTILE, HOSTILE: HOSTILE}
    thread = await desk.asked(
        url,
        desk.tool(HOSTILE, hostile, {"type": "object", "properties": {"q": {"type": "string", "description": HOSTILE}}},
                  description=HOSTILE),
        desk.plain({"question": HOSTILE, "x": [HOSTILE]}, {"enum": [HOSTILE, "b"]}),
        desk.plain({"type": "review_text", "instruction": HOSTILE, "content": f"</textarea>{HOSTILE}"}),
        desk.plain(HOSTILE),
    )  # fmt: skip
    page = await opened(browser, f"{url}/inbox")
    links = await page.locator("#list .row a").evaluate_all("all => all.map((a) => a.href)")
    for address in (*links, *(f"{link}?unfolded=1" for link in links), f"{url}/inbox/thread?id={thread}"):
        await page.goto(address)
        await expect(page.locator("main img, main svg, main script")).to_have_count(0)
        text = await page.locator("main").inner_text()
        assert "<img src=x" in text
        assert "\u202e" not in text
        assert "\u200b" not in text
        assert "{{7*7}}" in text
    assert len(links) == 4
    assert trouble(page) == []


# --- looks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_pages_fit_their_width_and_every_field_has_a_name(
    browser: Browser, url: str, viewport: dict[str, int], scheme: Any, tmp_path: Path
) -> None:
    folder = PICTURES if os.environ.get("WAITPOINT_PICTURES") else tmp_path
    size = "phone" if viewport is PHONE else "desktop"
    await desk.asked(url, *desk.of_all_kinds(), thread="spring-release")
    page = await opened(browser, f"{url}/inbox", viewport, color_scheme=scheme)
    links = await page.locator("#list .row a").evaluate_all("all => all.map((a) => [a.href, a.innerText])")
    named = {"send_mail": "card", "3 calls": "batch", "transfer_money": "doubt", "trip": "form"}
    for address, text in ([f"{url}/inbox", "list"], *links, [f"{url}/inbox/thread?id=spring-release", "thread"]):
        await page.goto(address)
        if "send_mail" in text:
            await press(page, "e")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), text
        nameless = (
            "all => all.filter((e) => !e.labels?.length && !e.ariaLabel && e.type !== 'hidden').map((e) => e.name)"
        )
        assert await page.locator("input, select, textarea").evaluate_all(nameless) == []
        name = text if text in ("list", "thread") else next((n for word, n in named.items() if word in text), None)
        if name is not None:
            await page.evaluate("scrollTo(0, 0)")
            kept = f"{name}-{size}-{scheme}" in KEPT
            await page.screenshot(path=(folder if kept else tmp_path) / f"inbox-{name}-{size}-{scheme}.png")
    assert trouble(page) == []
