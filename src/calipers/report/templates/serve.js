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
  const describe = async () => {
    if (!at("file").value) return;
    try {
      const { roles, alpha } = await ask("columns/" + at("file").value);
      at("alpha").placeholder = alpha.join(",");
      at("columns").textContent = "Columns: " + Object.entries(roles).map(([name, role]) => name + " (" + role + ")").slice(0, 12).join(", ");
      at("names").replaceChildren(...Object.keys(roles).map((name) => new Option(name)));
      say("");
    } catch (error) {
      at("columns").textContent = "";
      say(error.message, true);
    }
  };
  const show = (path) => {
    at("report").hidden = false;
    at("report").src = path;
  };
  const list = (job, name, verdict) => {
    const line = document.createElement("li");
    const pick = document.createElement("input");
    pick.type = "checkbox";
    pick.value = job;
    pick.setAttribute("aria-label", "compare " + name);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => show("reports/" + job));
    const words = document.createElement("span");
    words.textContent = verdict;
    line.append(pick, button, words);
    at("runs").prepend(line);
    at("compare").hidden = at("runs").children.length < 2;
  };
  const follow = async (job) => {
    for (;;) {
      const state = await ask("jobs/" + job);
      at("progress").hidden = state.state !== "running";
      at("progress").max = state.total || 1;
      at("progress").value = state.done;
      if (state.state === "failed") throw new Error(state.error);
      if (state.state === "finished") return state;
      say(state.code ? "Checking " + state.code + " ..." : "Reading ...");
      await new Promise((wake) => setTimeout(wake, 250));
    }
  };
  at("file").addEventListener("change", describe);
  at("upload").addEventListener("change", async () => {
    const [file] = at("upload").files;
    if (!file) return;
    try {
      const kept = await ask("upload?name=" + encodeURIComponent(file.name), { method: "POST", body: file });
      at("file").add(new Option(kept.name, kept.file, true, true));
      await describe();
    } catch (error) {
      say(error.message, true);
    }
  });
  at("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    at("go").disabled = true;
    try {
      const choices = Object.fromEntries([...new FormData(at("form"))].filter(([, value]) => value));
      const body = JSON.stringify({ file: at("file").value, choices });
      const { job } = await ask("run", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      const state = await follow(job);
      say(state.verdict.sentence);
      list(job, state.name, state.verdict.sentence);
      show("reports/" + job);
    } catch (error) {
      say(error.message, true);
    } finally {
      at("go").disabled = false;
      at("progress").hidden = true;
    }
  });
  at("compare").addEventListener("click", () => {
    const chosen = [...at("runs").querySelectorAll("input:checked")].map((box) => "job=" + encodeURIComponent(box.value));
    if (chosen.length < 2) return say("Choose two runs or more.", true);
    show("compare?" + chosen.join("&"));
  });
  describe();
})();
