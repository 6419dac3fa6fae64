"use strict";
// The page without its plots: theme, search, links into closed parts, the data as a file.

const root = document.documentElement;
root.classList.add("js");

const THEMES = ["system", "light", "dark"];
const listeners = [];

function setTheme(name) {
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  document.getElementById("theme").textContent = "Theme: " + name;
  listeners.forEach((listener) => listener());
}

function onThemeChange(listener) {
  listeners.push(listener);
}

function watchTheme() {
  const button = document.getElementById("theme");
  button.addEventListener("click", () => {
    const now = root.dataset.theme || "system";
    setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    listeners.forEach((listener) => listener());
  });
}

// Print in the light theme whatever the screen shows.
function watchPrint() {
  let before = "system";
  addEventListener("beforeprint", () => {
    before = root.dataset.theme || "system";
    setTheme("light");
  });
  addEventListener("afterprint", () => setTheme(before));
}

function dataText() {
  return document.getElementById("gpudebug-data").textContent;
}

let parsed = null;

function reportData() {
  if (parsed === null) parsed = JSON.parse(dataText());
  return parsed;
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([dataText()], { type: "application/json" }));
  link.download = "gpudebug-report.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A link to a hypothesis opens it: its target is a closed part of the page, or inside one.
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const closed = target && target.closest("details:not([open])");
  if (!closed) return;
  closed.open = true;
  target.scrollIntoView();
}

function watchLinks() {
  addEventListener("hashchange", reveal);
  // A second click on the same link changes no address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#h"]');
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  reveal();
}

function filterHypotheses() {
  const text = document.getElementById("find").value.trim().toLowerCase();
  const status = document.getElementById("only").value;
  let shown = 0;
  for (const row of document.querySelectorAll("table.list tbody tr")) {
    const fits = (!status || row.dataset.status === status) && row.textContent.toLowerCase().includes(text);
    row.hidden = !fits;
    const details = document.getElementById("h" + row.cells[0].textContent);
    if (details) details.hidden = !fits;
    shown += fits;
  }
  document.getElementById("found").textContent = text || status ? shown + " shown" : "";
}

function watchFilters() {
  const find = document.getElementById("find");
  if (!find) return;
  find.addEventListener("input", filterHypotheses);
  document.getElementById("only").addEventListener("change", filterHypotheses);
}

watchTheme();
watchPrint();
watchLinks();
watchFilters();
document.getElementById("download").addEventListener("click", download);
