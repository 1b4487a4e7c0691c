"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("audit-data").textContent);
  root.classList.add("js");

  // Light and dark.
  document.getElementById("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  });

  // A link into a fold opens it; printing opens all of them.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();
  const folds = [...document.querySelectorAll("details:not(.table)")];
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = folds.filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
  });
  addEventListener("afterprint", () => closed.forEach((fold) => (fold.open = false)));

  // The slider over alpha.
  const slider = document.getElementById("alpha-slider");
  if (slider && data.slider.length) {
    slider.closest(".slider").hidden = false;
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
    slider.value = String(Math.max(0, data.slider.findIndex((stop) => stop.start)));
    slider.addEventListener("input", show);
    show();
  }

  // The table behind every picture, made when it is first asked for: its first rows, all of them on request.
  const FIRST_ROWS = 15;
  const cell = (tag, text, label) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (tag === "th") made.scope = "col";
    if (label) made.dataset.label = label;
    return made;
  };
  const row = (cells, tag, header) => {
    const made = document.createElement("tr");
    cells.forEach((text, at) => made.append(cell(tag, text, header && header[at])));
    return made;
  };
  for (const place of document.querySelectorAll("[data-table]")) {
    place.closest("details").addEventListener("toggle", () => {
      if (place.firstChild) return;
      const table = data.pictures[place.dataset.table];
      const [made, head, body] = ["table", "thead", "tbody"].map((tag) => document.createElement(tag));
      made.className = "numbers";
      const add = (rows) => rows.forEach((cells) => body.append(row(cells, "td", table.header)));
      head.append(row(table.header, "th"));
      add(table.rows.slice(0, FIRST_ROWS));
      made.append(head, body);
      place.append(made);
      const rest = table.rows.slice(FIRST_ROWS);
      if (!rest.length) return;
      const more = document.createElement("button");
      more.type = "button";
      more.textContent = "Show all " + table.rows.length + " rows";
      more.addEventListener("click", () => {
        add(rest);
        more.remove();
        place.focus();
      });
      place.after(more);
    });
  }
  // A spreadsheet runs text that begins like a formula; a quote in front keeps it text. Numbers stay numbers.
  const number = /^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf)( ?%)?$/;
  const inert = (text) => (/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && !number.test(text) ? "'" + text : text);
  const quoted = (text) => '"' + inert(String(text).replaceAll("\u202f", "")).replaceAll('"', '""') + '"';
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
