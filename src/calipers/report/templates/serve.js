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

  // Columns: all of them, and those that the search leaves.
  let roles = [];
  const list = () => {
    const wanted = at("search").value.toLowerCase();
    const shown = roles.filter((pair) => pair.join(" ").toLowerCase().includes(wanted));
    at("columns").replaceChildren(...shown.map(([name, role]) => {
      const row = made("tr");
      row.append(made("td", name), made("td", role || "not recognised"));
      return row;
    }));
    at("count").textContent = shown.length === roles.length ? roles.length + " columns" : shown.length + " of " + roles.length + " columns";
  };
  const describe = async () => {
    const chosen = at("file").selectedOptions[0];
    if (!chosen) return;
    try {
      const found = await ask("columns/" + chosen.value);
      if (at("file").selectedOptions[0] !== chosen) return; // another file was chosen meanwhile
      roles = Object.entries(found.roles);
      at("alpha").placeholder = found.alpha.join(",");
      at("names").replaceChildren(...roles.map(([name]) => new Option(name)));
      at("search").value = "";
      list();
      at("chosen").textContent = chosen.textContent;
      at("columns-part").hidden = false;
      at("others").open = Boolean(found.problem);
      say(found.problem || "", found.problem);
    } catch (error) {
      at("columns-part").hidden = true;
      say(error.message, true);
    }
  };
  at("search").addEventListener("input", list);
  at("search").addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  at("file").addEventListener("change", describe);

  // A file by choosing, by dropping, or the example.
  const take = async (asked) => {
    try {
      say("Reading ...");
      const kept = await asked();
      const known = [...at("file").options].find((option) => option.value === kept.file);
      if (known) known.selected = true;
      else at("file").add(new Option(kept.name, kept.file, true, true));
      at("chooser").hidden = false;
      await describe();
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
  const show = (run) => {
    const line = made("li");
    line.dataset.job = run.job;
    const pick = made("input", "", { type: "checkbox", value: run.job });
    pick.setAttribute("aria-label", "compare " + run.name + ", " + run.when);
    pick.addEventListener("change", choose);
    const words = made("div");
    const open = made("a", run.name, { href: "reports/" + run.job, target: "_blank", rel: "noopener" });
    const facts = made("div", run.rows + " rows, alpha " + run.alphas.join(", ") + ", " + run.when.replace("T", " ").slice(0, 16) + " UTC");
    facts.className = "quiet";
    words.append(open, made("div", run.verdict.sentence), facts);
    const downloads = made("div");
    downloads.className = "downloads";
    const forms = { html: "HTML", json: "JSON", md: "Markdown", csv: "Rows (CSV)" };
    for (const [ending, name] of Object.entries(forms)) {
      if (ending === "csv" && !run.has_rows) continue;
      const link = made("a", name, { href: "reports/" + run.job + "." + ending, download: "" });
      link.setAttribute("aria-label", "download " + run.name + " as " + name);
      downloads.append(link);
    }
    line.append(pick, words, downloads);
    at("runs").prepend(line);
    at("runs-part").hidden = false;
    return open;
  };
  const follow = async (job) => {
    for (;;) {
      const state = await ask("jobs/" + job);
      at("progress").hidden = state.state !== "running";
      at("progress").max = state.total || 1;
      at("progress").value = state.done;
      if (state.state === "failed") throw new Error(state.error);
      if (state.state === "finished") break;
      say(state.code ? "Check " + (state.done + 1) + " of " + state.total + ": " + state.code : "Reading " + state.name + " ...");
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
      at("progress").hidden = true;
    }
  };
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    finish(async () => {
      const choices = Object.fromEntries([...new FormData(at("form"))].filter(([, value]) => value));
      const body = JSON.stringify({ file: at("file").value, choices });
      return (await ask("run", { method: "POST", headers: { "Content-Type": "application/json" }, body })).job;
    });
  });
  at("compare").addEventListener("click", () => {
    const jobs = chosen().map((box) => "job=" + encodeURIComponent(box.value));
    open("compare?" + jobs.join("&"), "_blank", "noopener");
  });

  // What was there before a reload.
  const restore = async () => {
    await describe();
    for (const run of await ask("runs")) {
      if (run.state === "finished") show(run);
      else finish(async () => run.job);
    }
  };
  restore();
})();
