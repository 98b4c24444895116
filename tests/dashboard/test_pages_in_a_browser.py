"""The pages in a real Chromium, on a cluster that the test controls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.dashboard.browsers import Tab, chromium
from tests.dashboard.stub import MACHINES, MIGRATIONS, PODS, TOKEN, WORKLOADS, Cluster, Running, workload

MANY = 10_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running(Cluster())
    for name in ("api", "shop"):
        made.cluster.put(WORKLOADS, workload(name))
    made.cluster.put(WORKLOADS, workload("broken", ready=1, message="2 pods are lost"))
    yield made
    made.close()


@pytest.fixture
def tab(browser: Any, running: Running) -> Iterator[Tab]:
    made = Tab(browser)
    made.page.goto(running.link())
    made.page.wait_for_selector(".space .row")
    yield made
    made.close()
    assert made.complaints == []


def test_the_link_signs_in_and_troubles_come_first(tab: Tab, running: Running) -> None:
    assert tab.page.url == f"{running.base}/#/"
    assert tab.rows() == ["broken", "api", "shop"]
    assert tab.text(".chip.trouble") == "▲1 Trouble"
    assert tab.page.title() == "1 in trouble · Holdfast"
    assert "2 pods are lost" in tab.text(".space .row.trouble")
    assert tab.page.get_attribute(".space .row.trouble .floorbar", "aria-label") == "1 of 3 ready, floor 2, lowest 1"


def test_without_a_session_a_token_is_asked_for(browser: Any, running: Running) -> None:
    tab = Tab(browser)
    tab.page.goto(running.base)
    tab.page.fill("#token", TOKEN)
    tab.page.click("button[type=submit]")
    tab.page.wait_for_selector(".space .row")
    tab.page.click("text=Sign out")
    tab.page.wait_for_selector("#token")
    assert tab.complaints == []
    tab.page.fill("#token", "guessed")
    tab.page.click("button[type=submit]")
    tab.expect("document.querySelector('.login .wrong').textContent.includes('does not accept')")
    tab.close()


def test_changes_are_shown_as_they_happen(tab: Tab, running: Running) -> None:
    running.do(lambda: running.cluster.put(WORKLOADS, workload("api", phase="Updating", message="waits for web-1")))
    tab.expect("document.querySelector('.space').innerText.includes('waits for web-1')")
    running.do(lambda: running.cluster.put(WORKLOADS, workload("broken")))
    tab.expect("document.querySelector('.chip.trouble').innerText.includes('0')")
    running.do(lambda: running.cluster.delete(WORKLOADS, "shop"))
    tab.expect("document.querySelectorAll('.space .row').length === 2")
    running.do(lambda: running.cluster.put(WORKLOADS, workload("new")))
    tab.expect("document.querySelectorAll('.space .row').length === 3")


def test_rows_are_searched_filtered_and_kept_in_the_address(tab: Tab, running: Running) -> None:
    running.do(lambda: running.cluster.put(WORKLOADS, workload("far", namespace="other")))
    running.do(
        lambda: running.cluster.put(
            WORKLOADS,
            workload(
                "part",
                ownerReferences=[{"kind": "Set", "name": "s", "uid": "u", "controller": True, "apiVersion": "x/v1"}],
            ),
        )
    )
    tab.expect("document.querySelectorAll('.space .row').length === 4")
    tab.page.check("#parts")
    tab.expect("document.querySelectorAll('.space .row').length === 5")
    tab.page.keyboard.press("Escape")
    tab.page.fill("#search", "LOST pods")
    tab.expect("document.querySelectorAll('.space .row').length === 1")
    assert "q=LOST" in tab.page.url
    tab.page.fill("#search", "")
    tab.page.select_option("select[aria-label=Namespace]", "other")
    tab.expect("document.querySelectorAll('.space .row').length === 1")
    tab.page.select_option("select[aria-label=Namespace]", "")
    tab.page.click(".chip.trouble")
    tab.expect("document.querySelectorAll('.space .row').length === 1")
    tab.page.reload()
    tab.expect("document.querySelectorAll('.space .row').length === 1")
    assert tab.rows() == ["broken"]
    tab.page.fill("#search", "nothing like it")
    tab.page.wait_for_selector("text=Nothing matches the filter.")


def test_keys_move_open_and_return(tab: Tab) -> None:
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("k")
    assert tab.text(".space .row.selected .name") == "broken"
    assert "broken, Trouble" in str(tab.page.text_content("#live"))
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("h1:has-text('broken')")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector(".space .row.selected")
    tab.page.keyboard.press("/")
    assert tab.page.evaluate("document.activeElement.id") == "search"
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("?")
    tab.page.wait_for_selector("dialog[open] >> text=Keyboard")
    tab.page.keyboard.press("Escape")
    before = tab.page.evaluate("document.documentElement.dataset.theme")
    tab.page.keyboard.press("t")
    assert tab.page.evaluate("document.documentElement.dataset.theme") != before
    tab.page.keyboard.press("g")
    tab.page.keyboard.press("p")
    tab.page.wait_for_selector(".planner-form")


def pod(name: str, *, ready: bool, revision: str = "r1") -> dict[str, Any]:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    state = {"running": {"startedAt": "2025-01-01T00:00:00Z"}} if ready else waiting
    labels = {"cloudless.io/workload": "shop", "cloudless.io/revision": revision}
    owner = {"kind": "Workload", "name": "shop", "uid": "uid-shop", "controller": True, "apiVersion": "cloudless.io/v1"}
    return {
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "web:1"}]},
        "status": {
            "phase": "Running" if ready else "Pending",
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": "2025-01-01T00:00:00Z"}],
            "containerStatuses": [{"name": "app", "ready": ready, "state": state}],
        },
    }


def test_the_page_of_an_object_is_live(tab: Tab, running: Running) -> None:
    running.do(lambda: running.cluster.put(PODS, pod("shop-1", ready=True)))
    tab.page.click(".space .row:has-text('shop') a")
    tab.page.wait_for_selector(".pods .cell.available")
    running.do(lambda: running.cluster.put(PODS, pod("shop-2", ready=False)))
    tab.page.wait_for_selector(".pods .cell.unready")
    tab.page.wait_for_selector("td.why:has-text('ImagePullBackOff')")
    conditions = [
        {
            "type": "Available",
            "status": "False",
            "reason": "TooFew",
            "message": "1 of 3 ready",
            "lastTransitionTime": "2025-01-01T00:00:00Z",
        }
    ]
    changed = workload("shop", ready=1, phase="Updating", message="waits for shop-2")
    changed["status"]["conditions"] = conditions
    running.do(lambda: running.cluster.put(WORKLOADS, changed))
    tab.page.wait_for_selector(".because:has-text('waits for shop-2')")
    tab.page.wait_for_selector(".condition.bad:has-text('TooFew')")
    tab.page.wait_for_selector(".sec-timeline svg >> text=lowest 1")
    tab.page.click("[role=tab]:has-text('YAML')")
    assert "kind: Workload" in tab.text("#pane-yaml")
    tab.page.click("a:has-text('Overview') >> nth=1")
    tab.page.wait_for_selector(".space .row")


def test_a_deleted_object_says_so(tab: Tab, running: Running) -> None:
    tab.page.click(".space .row:has-text('api') a")
    tab.page.wait_for_selector("h1:has-text('api')")
    running.do(lambda: running.cluster.delete(WORKLOADS, "api"))
    tab.page.wait_for_selector("text=The object is deleted.")


def test_links_lead_from_a_migration_to_its_machine_and_back(tab: Tab, running: Running) -> None:
    machine = {"metadata": {"name": "db"}, "spec": {}, "status": {"phase": "Running"}}
    source = {"source": {"vmRef": {"name": "db"}}, "target": {"name": "db2"}}
    move = {
        "metadata": {"name": "move"},
        "spec": source,
        "status": {"phase": "Exporting", "progress": {"percentage": 40}},
    }
    running.do(lambda: running.cluster.put(MACHINES, machine))
    running.do(lambda: running.cluster.put(MIGRATIONS, move))
    tab.page.click(".space .row:has-text('move') a")
    tab.page.wait_for_selector(".progress:has-text('40 %')")
    move["status"]["progress"]["percentage"] = 80
    running.do(lambda: running.cluster.put(MIGRATIONS, move))
    tab.page.wait_for_selector(".progress:has-text('80 %')")
    tab.page.click(".sec-links a:has-text('db')")
    tab.page.wait_for_selector("h1:has-text('db')")
    tab.page.wait_for_selector(".sec-links h3:has-text('migration from here')")
    tab.page.click(".sec-links a:has-text('move')")
    tab.page.wait_for_selector("h1:has-text('move')")


HOSTILE = "<img src=x onerror=alert(1)>\"'`</script><script>alert(2)</script>"
NAME = HOSTILE.replace("/", "")
"""The dashboard asks for no name with a slash: it would be another path of the API server."""


def test_hostile_names_and_messages_are_only_text(tab: Tab, running: Running) -> None:
    tab.page.on("dialog", lambda dialog: tab.complaints.append("a dialog was opened"))
    hostile = workload(NAME, message=HOSTILE, phase=HOSTILE, namespace="a:b?c#d", annotations={HOSTILE: HOSTILE})
    hostile["status"]["conditions"] = [{"type": HOSTILE, "status": "False", "reason": HOSTILE, "message": HOSTILE}]
    running.do(lambda: running.cluster.put(WORKLOADS, hostile))
    tab.page.wait_for_selector(".space .row >> text=<img")
    tab.page.click(".space .row:has-text('<img') a")
    tab.page.wait_for_selector("h1:has-text('<img')")
    assert tab.text("h1") == NAME
    tab.page.click("[role=tab]:has-text('YAML')")
    assert "onerror" in tab.text("#pane-yaml")
    assert tab.page.locator("main img, main script").count() == 0


def test_a_lost_connection_is_shown_and_taken_up_again(browser: Any, running: Running) -> None:
    tab = Tab(browser)
    tab.page.goto(running.link())
    tab.page.wait_for_selector(".space .row")
    tab.context.set_offline(True)
    tab.page.evaluate("dispatchEvent(new Event('offline'))")
    running.do(running.dashboard._streams.close)
    tab.page.wait_for_selector(".connection.lost")
    assert len(tab.rows()) == 3
    running.do(lambda: running.cluster.put(WORKLOADS, workload("while-away")))
    tab.context.set_offline(False)
    tab.page.wait_for_selector(".connection.live")
    tab.page.wait_for_selector(".space .row:has-text('while-away')")
    assert not [each for each in tab.complaints if "net::" not in each]
    tab.close()


def test_a_server_that_was_restarted_asks_to_sign_in_again(browser: Any, running: Running) -> None:
    tab = Tab(browser)
    tab.page.goto(running.link())
    tab.page.wait_for_selector(".space .row")
    running.restart()
    tab.page.wait_for_selector("#token")
    tab.page.fill("#token", TOKEN)
    tab.page.click("button[type=submit]")
    tab.page.wait_for_selector(".space .row")
    tab.close()


def test_the_planner_plays_the_simulation_and_explains_mistakes(tab: Tab) -> None:
    tab.page.click("nav >> text=Planner")
    tab.page.wait_for_selector(".film .pods .cell")
    assert "completed" in tab.text(".film .callout")
    assert tab.page.locator(".steps tbody tr").count() > 1
    tab.page.fill("#plan-replicas", "3")
    tab.page.fill("#plan-maxUnavailable", "")
    tab.page.fill("#plan-maxSurge", "0")
    tab.page.fill("#plan-minAvailable", "3")
    tab.page.wait_for_selector(".callout.bad:has-text('Blocked')")
    tab.page.fill("#plan-maxSurge", "-1")
    tab.expect("document.getElementById('plan-maxSurge-wrong').textContent !== ''")
    tab.complaints[:] = [each for each in tab.complaints if "422" not in each]
    tab.page.fill("#plan-maxSurge", "2")
    tab.page.check("#plan-broken")
    tab.expect("!document.querySelector('.film .callout').textContent.includes('completed')")
    tab.page.fill(".film input[type=range]", "1")
    assert tab.text(".film-controls button") == "Play"


def test_a_phone_shows_everything_without_scrolling_sideways(browser: Any, running: Running) -> None:
    tab = Tab(browser, viewport={"width": 390, "height": 800}, color_scheme="dark", has_touch=True, is_mobile=True)
    tab.page.goto(running.link())
    tab.page.wait_for_selector(".space .row")
    assert tab.page.evaluate("document.documentElement.dataset.theme") == "dark"
    for address in ("#/", "#/o/workloads.cloudless.io/default/shop", "#/plan"):
        tab.page.goto(f"{running.base}/{address}")
        tab.page.wait_for_timeout(300)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390, address
    tab.close()
    assert tab.complaints == []


def test_everything_has_a_name_and_focus_is_seen(tab: Tab) -> None:
    nameless = """() => [...document.querySelectorAll('button, a, input, select, [role=img], svg')]
        .filter(each => !(each.innerText || each.ariaLabel || each.title || each.placeholder || each.labels?.length
            || each.closest('[aria-label]') || each.querySelector('img')))
        .map(each => each.outerHTML)"""
    for address in ("#/", "#/o/workloads.cloudless.io/default/shop", "#/plan"):
        tab.page.evaluate("(address) => { location.hash = address }", address)
        tab.page.wait_for_timeout(300)
        assert tab.page.evaluate(nameless) == [], address
    assert tab.page.locator("main").count() == 1
    assert tab.page.locator("header").first.is_visible()
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_ten_thousand_objects_are_a_few_rows_of_the_page(browser: Any, record_property: Any) -> None:
    cluster = Cluster()
    for number in range(MANY):
        cluster.put(WORKLOADS, workload(f"w{number:05}", namespace=f"team-{number % 20}"))
    running = Running(cluster)
    tab = Tab(browser)
    try:
        tab.page.goto(running.link())
        tab.page.wait_for_selector(".space .row")
        cold = tab.page.evaluate("performance.now()")
        tab.expect(f"document.getElementById('main').dataset.rows === '{MANY}'", timeout=30_000)
        tab.page.reload()
        tab.page.wait_for_selector(".space .row")
        painted = tab.page.evaluate("performance.now()")
        tab.expect(f"document.getElementById('main').dataset.rows === '{MANY}'")
        complete = tab.page.evaluate("performance.now()")
        assert tab.page.locator(".space .row").count() < 60
        tab.page.evaluate("document.querySelector('.scroller').scrollTop = 200000")
        tab.expect("document.querySelector('.space .row')?.ariaRowIndex > 4000")
        assert tab.page.locator(".space .row").count() < 60
        tab.page.fill("#search", "w07777")
        tab.expect("document.querySelectorAll('.space .row').length === 1")
        watch = """() => new Promise(resolve => {
            const seen = () => document.querySelector('.space').innerText.includes('it changed');
            new MutationObserver((_, observer) => { if (seen()) { observer.disconnect(); resolve(Date.now()); } })
                .observe(document.querySelector('.space'), {childList: true, subtree: true, characterData: true});
        })"""
        handle = tab.page.evaluate_handle(f"() => ({{ done: ({watch})() }})")
        began = time.time() * 1000
        changed = workload("w07777", namespace="team-17", message="it changed")
        running.do(lambda: cluster.put(WORKLOADS, changed))
        late = handle.evaluate("held => held.done") - began
        nodes = tab.page.evaluate("document.querySelectorAll('*').length")
        assert nodes < 1_500
        figures = {
            "first viewer": cold,
            "first paint": painted,
            "all rows": complete,
            "change on screen": late,
            "elements": nodes,
        }
        for name, figure in figures.items():
            record_property(name, figure)
            print(f"{name}: {figure:,.0f}")
        assert tab.complaints == []
    finally:
        tab.close()
        running.close()
