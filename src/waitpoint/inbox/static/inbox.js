// Adds to pages that work without it: keys, live updates, and a card that is locked as soon as it is answered.
"use strict";
(() => {
  const QUIET_MS = 400; // keys do nothing for this long after a card appears or changes
  const body = document.body;
  const base = body.dataset.base;
  const page = body.dataset.page;
  const $ = (selector, at = document) => at.querySelector(selector);
  const $$ = (selector, at = document) => [...at.querySelectorAll(selector)];
  let changedAt = 0;
  const keysOn = () => localStorage.getItem("waitpoint-keys") !== "off";
  const appeared = () => {
    changedAt = performance.now();
    delete body.dataset.keys;
    const tell = () => { if (performance.now() - changedAt < QUIET_MS) setTimeout(tell, 50); else body.dataset.keys = "ready"; };
    tell();
  };

  // --- times by the local clock
  const localTimes = (at) => {
    for (const each of $$("time[datetime]", at)) {
      const when = new Date(each.dateTime);
      if (!Number.isNaN(when.getTime())) { each.title = each.dateTime; each.textContent = when.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }); }
    }
  };

  // --- lock: an answer is sent once
  const lock = (card) => {
    card.setAttribute("aria-busy", "true");
    for (const each of $$("[data-submit], [data-act=send], .pick + label", card)) { if ("disabled" in each) each.disabled = true; }
    const live = $("#live");
    if (live) live.textContent = "Sending…";
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-answer]")) return;
    const card = form.closest(".card");
    if (card.getAttribute("aria-busy") === "true") { event.preventDefault(); return; }
    card.setAttribute("aria-busy", "true");
    setTimeout(() => lock(card), 0); // the form is read before its buttons are switched off
  });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // --- live
  const replaceList = async (list) => {
    const focused = document.activeElement?.closest?.("[data-id]")?.dataset.id;
    const query = list.dataset.query;
    const answer = await fetch(`${base}/list${query ? `?${query}` : ""}`);
    if (!answer.ok) return;
    list.innerHTML = await answer.text(); // from this server, with everything escaped
    localTimes(list);
    if (focused) $(`#list [data-id="${focused}"]`)?.focus({ preventScroll: true });
  };
  const replaceState = async (card) => {
    if (card.getAttribute("aria-busy") === "true") return;
    const answer = await fetch(`${base}/questions/${card.dataset.id}/state`);
    if (!answer.ok) return;
    const isOpen = answer.headers.get("X-Question") === "open";
    const state = $("#state", card);
    if (isOpen && card.dataset.open) return;
    const text = await answer.text();
    const keep = $(".banner.lost", state);
    state.innerHTML = text; // from this server, with everything escaped
    if (keep) state.prepend(keep);
    localTimes(state);
    if (!isOpen && card.dataset.open) {
      card.dataset.open = "";
      appeared();
      for (const each of $$("[data-submit], .pick, [name=add]", card)) each.disabled = true;
      state.scrollIntoView({ block: "nearest" });
    }
  };
  const watch = () => {
    const list = $("#list");
    const card = $(".card[data-id]");
    if (!list && !card) return;
    const events = new EventSource(`${base}/live`);
    events.addEventListener("changed", (event) => {
      const { waiting } = JSON.parse(event.data);
      document.title = document.title.replace(/^(\(\d+\) )?/, waiting ? `(${waiting}) ` : "");
      if (list) replaceList(list);
      if (card) replaceState(card);
    });
    events.addEventListener("open", () => { body.dataset.live = "1"; $("#live").textContent = ""; });
    events.addEventListener("error", () => { $("#live").textContent = "Not connected; trying again"; });
    window.addEventListener("pagehide", () => events.close());
  };

  // --- keys
  const isField = (at) => at && (at.matches("input:not([type=radio]):not([type=checkbox]), textarea, select") || at.isContentEditable);
  const follow = (name) => { const link = $(`[data-nav="${name}"]`) ?? (name === "next" ? $("#next") : null); if (link) link.click(); return Boolean(link); };
  const step = (by) => {
    const rows = $$("#list .row a");
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement);
    rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))].focus();
  };
  const open = (details) => {
    for (const other of $$("details.way[open]")) if (other !== details) other.open = false;
    details.open = true;
    $("textarea, input:not([type=hidden]), select", details)?.focus();
  };
  const currentItem = () => document.activeElement?.closest?.(".batch .item")
    ?? $$(".batch .item").find((item) => !$(".pick:checked", item)) ?? $(".batch .item");
  const decideInBatch = (key) => {
    const item = currentItem();
    const pick = $(`.pick[data-key="${key}"]`, item);
    if (!pick || pick.disabled) return;
    pick.checked = true;
    const field = $(`.fields.for-${pick.value} textarea, .fields.for-${pick.value} input:not([type=hidden])`, item);
    if (field && key !== "y") { field.focus(); return; }
    const next = $$(".batch .item").find((each) => !$(".pick:checked", each));
    (next ?? $(".batch .send [data-submit]")).focus();
  };
  const decide = (key) => {
    if (!$(".card")?.dataset.open) return;
    if ($(".batch")) { decideInBatch(key); return; }
    const at = $(`.ways [data-key="${key}"]`);
    if (!at) return;
    if (at.matches("summary")) open(at.parentElement);
    else if (!at.disabled) at.click();
    else $("#deceptive a")?.focus();
  };
  const sendOpen = () => {
    const form = document.activeElement?.closest?.("form[data-answer]") ?? $(".batch") ?? $("details.way[open] form");
    const buttons = form ? $$("[data-submit]:not(:disabled)", form) : [];
    if (buttons.length) form.requestSubmit(buttons[0]);
  };
  const escape = (at) => {
    if (isField(at)) { at.blur(); return; }
    const opened = $$("details.way[open]").find((each) => $$("details.way").length > 1 || $$(".ways form").length > 1);
    if (opened) { opened.open = false; return; }
    follow("back");
  };
  document.addEventListener("keydown", (event) => {
    const at = document.activeElement;
    const isSend = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    const isEarly = performance.now() - changedAt < QUIET_MS;
    if (page === "card" && isEarly && !isField(at) && (event.key.length === 1 || event.key === "Enter") && !at?.closest?.("nav, .bar")) {
      event.preventDefault(); // not even Enter or Space on what has the focus
      return;
    }
    if (!keysOn() || event.isComposing || $("dialog[open]")) return;
    if (isSend) { if (!isEarly && !event.repeat) { event.preventDefault(); sendOpen(); } return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { escape(at); return; }
    if (isField(at) || event.repeat && "yner".includes(event.key)) return;
    const act = {
      "?": () => $("#help").showModal(),
      "/": () => { const search = $("#search"); if (search) search.focus(); else location.assign(base); },
      j: () => (page === "list" ? step(1) : follow("next")),
      k: () => (page === "list" ? step(-1) : follow("prev")),
      o: () => (at?.matches?.(".row a") ? at.click() : page === "list" ? $("#list .row a")?.click() : follow("next")),
      y: () => decide("y"), n: () => decide("n"), e: () => decide("e"), r: () => decide("r"),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  }, true);

  // --- buttons that only the script has
  const showKeys = () => { const button = $('[data-act="keys"]'); button.textContent = keysOn() ? "Keys on" : "Keys off"; button.setAttribute("aria-pressed", String(keysOn())); };
  for (const each of $$(".needs-script")) each.hidden = false;
  showKeys();
  document.addEventListener("click", async (event) => {
    const act = event.target.closest("[data-act]")?.dataset.act;
    const reason = event.target.closest("[data-reason]");
    if (reason) { const field = document.getElementById(reason.dataset.reason); field.value = reason.textContent; field.focus(); }
    if (act === "keys") { localStorage.setItem("waitpoint-keys", keysOn() ? "off" : "on"); showKeys(); }
    if (act === "help") $("#help").showModal();
    if (act === "copy") { await navigator.clipboard.writeText(await (await fetch(`${base}/questions/${$(".card").dataset.id}/payload`)).text()); event.target.textContent = "Copied"; }
  });
  for (const each of $$(".filters select")) each.addEventListener("change", () => each.form.requestSubmit());
  for (const each of $$("details.way")) each.addEventListener("toggle", () => { if (each.open) for (const other of $$("details.way[open]")) if (other !== each) other.open = false; });
  const first = $("#errors") ?? $("[aria-invalid=true]") ?? $("#preview");
  if (first) { first.scrollIntoView({ block: "center" }); if (first.matches("textarea, input, select")) first.focus(); }
  else if ($("#next") && !$(".card")?.dataset.open) $("#next").focus({ preventScroll: true });
  localTimes(document);
  appeared();
  watch();
})();
