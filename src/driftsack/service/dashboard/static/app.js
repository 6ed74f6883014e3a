// The pages work without this script; it keeps them up to date and asks for confirmations in place.
"use strict";
(() => {
  const AT_MOST_EVERY = 1000; // milliseconds between two updates
  const find = (id) => document.getElementById(id);

  const theme = find("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("driftsack-theme", root.dataset.theme);
    document.body.dispatchEvent(new CustomEvent("redraw"));
  });

  // Log in by a link: the key is in the fragment, which is never sent by the browser itself.
  const login = find("login");
  if (login) {
    find("next").value = new URLSearchParams(location.search).get("next") || "/";
    if (location.pathname === "/open" && location.hash.length > 1) {
      find("key").value = location.hash.slice(1);
      history.replaceState(null, "", "/open");
      login.submit();
    }
  }

  // Server-sent events say that something happened; the page then asks for its parts again.
  const watched = document.querySelector("[data-stream]");
  if (watched) {
    const live = find("live"), hold = find("hold");
    let held = false, waiting = null, last = 0;
    const update = () => {
      waiting = null;
      last = performance.now();
      if (!held && !find("dialog").open) document.body.dispatchEvent(new CustomEvent("changed"));
    };
    const say = (text, good) => {
      if (live.textContent !== text) live.textContent = text;
      live.classList.toggle("off", !good);
    };
    const stream = new EventSource(watched.dataset.stream);
    stream.onopen = () => say(held ? "Updates paused" : "Live", !held);
    stream.onerror = () => say("Connection lost; trying again", false);
    let first = true;
    stream.onmessage = () => {
      if (first) { first = false; return; }
      if (waiting === null) waiting = setTimeout(update, Math.max(0, last + AT_MOST_EVERY - performance.now()));
    };
    hold.hidden = false;
    hold.addEventListener("click", () => {
      held = !held;
      hold.setAttribute("aria-pressed", String(held));
      hold.textContent = held ? "Resume updates" : "Pause updates";
      say(held ? "Updates paused" : "Live", !held);
      if (!held) update();
    });
  }

  // Confirmations open in a dialog; without this script they are pages.
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "dialog" && !event.target.open) event.target.showModal();
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const to = event.detail.xhr.responseURL;
    if (to && new URL(to).pathname === "/login") { event.detail.shouldSwap = false; location.assign("/login"); }
  });
  document.body.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (close && find("dialog").open) { event.preventDefault(); find("dialog").close(); }
  });
})();
