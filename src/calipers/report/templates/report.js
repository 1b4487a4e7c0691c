"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("audit-data").textContent);
  root.classList.add("js");

  // Tabs: click, arrow keys, Home and End; links of the cards open them too.
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const open = (name, focus) => {
    for (const tab of tabs) {
      const chosen = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).classList.toggle("open", chosen);
      if (chosen && focus) tab.focus();
    }
  };
  const step = { ArrowRight: 1, ArrowLeft: -1 };
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => open(tab.dataset.tab, false));
    tab.addEventListener("keydown", (event) => {
      let next = null;
      if (event.key in step) next = (at + step[event.key] + tabs.length) % tabs.length;
      if (event.key === "Home") next = 0;
      if (event.key === "End") next = tabs.length - 1;
      if (next === null) return;
      event.preventDefault();
      open(tabs[next].dataset.tab, true);
    });
  });
  for (const link of document.querySelectorAll("a[data-tab]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      open(link.dataset.tab, true);
      document.getElementById("panel-" + link.dataset.tab).scrollIntoView({ block: "start" });
    });
  }
  const named = location.hash.replace("#panel-", "");
  open(tabs.some((tab) => tab.dataset.tab === named) ? named : tabs[0].dataset.tab, false);

  // Light and dark.
  document.getElementById("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  });

  // The slider over alpha.
  const slider = document.getElementById("alpha-slider");
  if (slider && data.slider.length) {
    const words = document.getElementById("alpha-words");
    const stops = [...document.querySelectorAll(".stop")];
    slider.max = String(data.slider.length - 1);
    const show = () => {
      const stop = data.slider[Number(slider.value)];
      words.textContent = stop.words;
      words.classList.toggle("out", !stop.inside);
      slider.setAttribute("aria-valuetext", stop.words);
      stops.forEach((mark, at) => mark.classList.toggle("on", at === Number(slider.value)));
    };
    slider.value = String(data.slider.findIndex((stop) => stop.start) >= 0 ? data.slider.findIndex((stop) => stop.start) : 0);
    slider.addEventListener("input", show);
    show();
  }

  // The table behind every picture, made when it is first asked for.
  const cell = (tag, text) => {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  };
  const row = (cells, tag) => {
    const made = document.createElement("tr");
    cells.forEach((text) => made.append(cell(tag, text)));
    return made;
  };
  for (const place of document.querySelectorAll("[data-table]")) {
    place.closest("details").addEventListener("toggle", () => {
      if (place.firstChild) return;
      const table = data.pictures[place.dataset.table];
      const made = document.createElement("table");
      made.append(row(table.header, "th"));
      table.rows.forEach((cells) => made.append(row(cells, "td")));
      place.append(made);
    });
  }
  // A spreadsheet runs text that begins like a formula; a quote in front keeps it text. Numbers stay numbers.
  const inert = (text) => (/^[=+\-@\t\r]/.test(text) && !/^[+-]?[0-9.]/.test(text) && !/^-?inf/.test(text) ? "'" + text : text);
  const quoted = (text) => '"' + inert(String(text)).replaceAll('"', '""') + '"';
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      const table = data.pictures[button.dataset.save];
      const lines = [table.header, ...table.rows].map((cells) => cells.map(quoted).join(","));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\r\n")], { type: "text/csv" }));
      link.download = button.dataset.save + ".csv";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
})();
