"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const say = (text, bad) => {
    at("message").textContent = text;
    at("message").classList.toggle("error", Boolean(bad));
  };
  const ask = async (path, options) => {
    const answer = await fetch(path, options);
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error || answer.statusText);
    return body;
  };
  const made = (tag, text, fields) => Object.assign(document.createElement(tag), { textContent: text || "" }, fields || {});

  // The file and the fields of the page outlast a reload of it.
  const STATE = "calipers" + location.pathname;
  const fields = [...at("form").querySelectorAll("input[name]")];
  const filled = () => Object.fromEntries(fields.filter((field) => field.value.trim()).map((field) => [field.name, field.value.trim()]));
  const remember = () => sessionStorage.setItem(STATE, JSON.stringify({ file: at("file").value, fields: filled() }));
  const recall = () => {
    const kept = JSON.parse(sessionStorage.getItem(STATE) || "{}");
    const known = [...at("file").options].find((option) => option.value === kept.file);
    if (!known) return;
    known.selected = true;
    for (const field of fields) field.value = (kept.fields || {})[field.name] || "";
  };

  // Columns: all of them, and those that the search leaves; what each is taken for can be changed beside it.
  let roles = [];
  let options = {};
  const several = (name) => ["rest", "attributes"].includes(fields.find((field) => field.name === name)?.dataset.layout);
  const single = fields.filter((field) => ["column", "end", "rest", "attributes"].includes(field.dataset.layout));
  const holding = (name) => roles.map(([column]) => column).filter((column) => options[column] === name);
  const put = (name, columns) => (fields.find((field) => field.name === name).value = columns.join(","));
  const change = (column, wanted) => {
    const now = options[column];
    if (now && several(now)) put(now, holding(now).filter((one) => one !== column));
    else if (now) put(now, []);
    if (wanted) put(wanted, several(wanted) ? [...holding(wanted), column] : [column]);
    describe();
  };
  const chooser = (column) => {
    const picker = made("select");
    picker.setAttribute("aria-label", "take " + column + " for");
    picker.add(new Option("keep", ""));
    for (const field of single) if (field.name !== options[column]) picker.add(new Option(field.parentElement.firstChild.textContent.trim(), field.name));
    if (several(options[column]) && holding(options[column]).length > 1) picker.add(new Option("leave it out", "-"));
    picker.addEventListener("change", () => picker.value && change(column, picker.value === "-" ? "" : picker.value));
    return picker;
  };
  const list = () => {
    const wanted = at("search").value.toLowerCase();
    const shown = roles.filter((pair) => pair.join(" ").toLowerCase().includes(wanted));
    at("columns").replaceChildren(...shown.map(([name, role]) => {
      const row = made("tr");
      const place = made("td");
      place.append(chooser(name));
      row.append(made("td", name), made("td", role || "not recognised"), place);
      return row;
    }));
    at("count").textContent = shown.length === roles.length ? roles.length + " columns" : shown.length + " of " + roles.length + " columns";
  };
  const describe = async () => {
    const chosen = at("file").selectedOptions[0];
    if (!chosen) return;
    try {
      const { alpha, n_calibration, ...columns } = filled();
      const found = await ask("columns/" + chosen.value + "?" + new URLSearchParams(columns));
      if (at("file").selectedOptions[0] !== chosen) return; // another file was chosen meanwhile
      roles = Object.entries(found.roles);
      options = found.options;
      remember();
      at("alpha").placeholder = found.alpha.join(",");
      at("names").replaceChildren(...roles.map(([name]) => new Option(name)));
      list();
      at("chosen").textContent = chosen.textContent;
      at("columns-part").hidden = false;
      say(found.problem || "", found.problem);
    } catch (error) {
      at("columns-part").hidden = true;
      say(error.message, true);
    }
  };
  at("search").addEventListener("input", list);
  at("search").addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  const another = () => {
    for (const field of fields) if (field.dataset.layout || field.name === "sep") field.value = "";
    at("search").value = "";
    return describe();
  };
  at("file").addEventListener("change", another);
  for (const field of fields) field.addEventListener("change", () => (field.dataset.layout || field.name === "sep" ? describe() : remember()));

  // A file by choosing, by dropping, or the example.
  const take = async (asked) => {
    try {
      say("Reading ...");
      const kept = await asked();
      const known = [...at("file").options].find((option) => option.value === kept.file);
      if (known) known.selected = true;
      else at("file").add(new Option(kept.name, kept.file, true, true));
      at("chooser").hidden = false;
      await another();
    } catch (error) {
      say(error.message, true);
    }
  };
  const upload = (file) => file && take(() => ask("upload?name=" + encodeURIComponent(file.name), { method: "POST", body: file }));
  at("upload").addEventListener("change", () => upload(at("upload").files[0]));
  at("example").addEventListener("click", () => take(() => ask("example", { method: "POST" })));
  const over = (event, on) => {
    event.preventDefault();
    at("drop").classList.toggle("over", on);
  };
  at("drop").addEventListener("dragover", (event) => over(event, true));
  at("drop").addEventListener("dragleave", (event) => over(event, false));
  at("drop").addEventListener("drop", (event) => {
    over(event, false);
    upload(event.dataTransfer.files[0]);
  });

  // Audits.
  const chosen = () => [...at("runs").querySelectorAll("input:checked")];
  const choose = () => {
    at("compare").disabled = chosen().length < 2;
    at("hint").hidden = chosen().length >= 2;
  };
  const remove = async (run, line) => {
    if (!confirm("Remove audit " + run.number + ", " + run.name + "?")) return;
    try {
      await ask("reports/" + run.job + "/remove", { method: "POST" });
      line.remove();
      choose();
      at("runs-part").hidden = !at("runs").children.length;
      say("Audit " + run.number + " was removed.");
    } catch (error) {
      say(error.message, true);
    }
  };
  const show = (run) => {
    const line = made("li");
    line.dataset.job = run.job;
    const pick = made("input", "", { type: "checkbox", value: run.job });
    pick.setAttribute("aria-label", "compare audit " + run.number + ", " + run.name);
    pick.addEventListener("change", choose);
    const words = made("div");
    const open = made("a", run.number + ". " + run.name, { href: "reports/" + run.job, target: "_blank", rel: "noopener" });
    const facts = made("div", run.rows + " rows, alpha " + run.alphas.join(", ") + ", " + run.when.replace("T", " ").slice(0, 16) + " UTC");
    facts.className = "quiet";
    words.append(open, made("div", run.verdict.sentence), facts);
    const downloads = made("div");
    downloads.className = "downloads";
    const forms = { html: "HTML", json: "JSON", md: "Markdown", csv: "Rows (CSV)" };
    for (const [ending, name] of Object.entries(forms)) {
      if (ending === "csv" && !run.has_rows) continue;
      const link = made("a", name, { href: "reports/" + run.job + "." + ending, download: "" });
      link.setAttribute("aria-label", "download audit " + run.number + " as " + name);
      downloads.append(link);
    }
    const gone = made("button", "Remove", { type: "button", className: "remove" });
    gone.setAttribute("aria-label", "remove audit " + run.number + ", " + run.name);
    gone.addEventListener("click", () => remove(run, line));
    downloads.append(gone);
    line.append(pick, words, downloads);
    at("runs").prepend(line);
    at("runs-part").hidden = false;
    return open;
  };
  let followed = "";
  at("stop").addEventListener("click", async () => {
    at("stop").disabled = true;
    say("Stopping before the next check ...");
    try {
      await ask("jobs/" + followed + "/stop", { method: "POST" });
    } catch (error) {
      say(error.message, true);
    }
  });
  const follow = async (job) => {
    followed = job;
    at("stop").disabled = false;
    for (;;) {
      const state = await ask("jobs/" + job);
      at("running").hidden = state.state !== "running";
      at("progress").max = state.total || 1;
      at("progress").value = state.done;
      if (state.state === "failed" && state.stopped) return say(state.error);
      if (state.state === "failed") throw new Error(state.error);
      if (state.state === "finished") break;
      if (!state.stopped) say(state.step ? state.name + ", check " + (state.done + 1) + " of " + state.total + ": " + state.step : "Reading " + state.name + " ...");
      await new Promise((wake) => setTimeout(wake, 250));
    }
    const run = (await ask("runs")).find((one) => one.job === job);
    say(run.name + ": " + run.verdict.sentence);
    show(run).focus();
  };
  const finish = async (begin) => {
    at("go").disabled = true;
    try {
      await follow(await begin());
    } catch (error) {
      say(error.message, true);
    } finally {
      at("go").disabled = false;
      at("running").hidden = true;
    }
  };
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    finish(async () => {
      remember();
      const body = JSON.stringify({ file: at("file").value, choices: filled() });
      return (await ask("run", { method: "POST", headers: { "Content-Type": "application/json" }, body })).job;
    });
  });
  at("compare").addEventListener("click", () => {
    const jobs = chosen().map((box) => "job=" + encodeURIComponent(box.value));
    open("compare?" + jobs.join("&"), "_blank", "noopener");
  });

  // What was there before a reload.
  const restore = async () => {
    recall();
    await describe();
    for (const run of await ask("runs")) {
      if (run.state === "finished") show(run);
      else finish(async () => run.job);
    }
  };
  restore();
})();
