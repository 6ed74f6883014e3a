// The pages work without this script; it updates them and opens confirmations in a dialog.
"use strict";
(() => {
  const AT_MOST_EVERY = 1000; // milliseconds between two updates
  const TRY_AGAIN = 2000; // milliseconds before a lost stream is reopened
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

  // Log in by a link: the key is in the fragment, which browsers do not send.
  const login = find("login");
  if (login) {
    find("next").value = new URLSearchParams(location.search).get("next") || "/";
    if (location.pathname === "/open" && location.hash.length > 1) {
      find("key").value = location.hash.slice(1);
      history.replaceState(null, "", "/open");
      login.submit();
    }
  }

  // After a server-sent event the page requests its parts again.
  const watched = document.querySelector("[data-stream]");
  if (watched) {
    const live = find("live"), hold = find("hold");
    let held = false, lost = false, first = true, waiting = null, last = 0;
    const update = () => {
      waiting = null;
      last = performance.now();
      if (!held && !find("dialog").open) document.body.dispatchEvent(new CustomEvent("changed"));
    };
    const say = () => {
      const text = lost ? "Connection lost; trying again" : held ? "Updates paused" : "Live";
      if (live.textContent !== text) live.textContent = text;
      live.classList.toggle("off", lost || held);
    };
    const message = () => {
      if (first) { first = false; return; }
      if (waiting === null) waiting = setTimeout(update, Math.max(0, last + AT_MOST_EVERY - performance.now()));
    };
    // A browser stops reconnecting if the response is not a stream, for instance that of a proxy while the service
    // starts. The update after a loss shows what was missed, or redirects to the login if the session has expired.
    const connect = () => {
      const stream = new EventSource(watched.dataset.stream);
      stream.onopen = () => { lost = false; say(); };
      stream.onerror = () => {
        stream.close();
        lost = true;
        say();
        setTimeout(() => { update(); connect(); }, TRY_AGAIN);
      };
      stream.onmessage = message;
    };
    connect();
    hold.hidden = false;
    hold.addEventListener("click", () => {
      held = !held;
      hold.setAttribute("aria-pressed", String(held));
      hold.textContent = held ? "Resume updates" : "Pause updates";
      say();
      if (!held) update();
    });
  }

  // Confirmations open in a dialog; without this script they are pages.
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "dialog" && !event.target.open) event.target.showModal();
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const to = event.detail.xhr.responseURL;
    if (to && new URL(to).pathname === "/login") { event.detail.shouldSwap = false; location.assign(`/login?next=${encodeURIComponent(location.pathname)}`); }
  });
  document.body.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (close && find("dialog").open) { event.preventDefault(); find("dialog").close(); }
  });
})();
