// The page of `amqpscope draw`. The other views are in files of their own, which stand before this one.
// All texts come from the block of JSON and become text nodes, never markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const state = { connection: 0, view: "ladder", chosen: -1, zoom: 1, first: 0 };
  const WINDOW = 250; // rows that are in the document at a time
  const SESSION = ["attach", "flow", "transfer", "disposition", "detach"]; // frames that only their session reads

  const seconds = (time) => (time < 0 ? "−" : "+") + (Math.abs(time) / 1e9).toFixed(6);
  const now = () => data.connections[state.connection];
  const worst = (found) => (found.some((one) => one.certain) ? "error" : "possible");
  const wording = (one) => `${one.kind} ${one.rule}${one.by}: ${numbered(one.text)}`;

  // Connections by name

  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const ids = new Map(data.connections.map((one, number) => [one.id, number]));
  const anyId = new RegExp(`(?<![\\w.:])(?:${[...ids.keys()].map(escaped).join("|") || "(?!)"})(?!\\d)`, "g");

  /** The text, with the number of each connection of this page behind its id. */
  const numbered = (text) => text.replace(anyId, (id) => `${id} (${data.connections[ids.get(id)].heading.split(",")[0]})`);

  /** Ways to the other connections that a text names. */
  function others(text) {
    const named = new Set([...text.matchAll(anyId)].map(([id]) => ids.get(id)));
    named.delete(state.connection);
    return [...named].map((number) => make("p", {}, make("button", { type: "button", class: "go",
      on: { click: () => setConnection(number) } }, `Show ${data.connections[number].heading}`)));
  }

  /** How many findings a connection has, with those in folds and those that are not in the page. */
  const findings = (one) =>
    one.rows.reduce((sum, row) => sum + (row.found || []).length + (row.findings || 0), 0) + one.more;

  /** A connection in the list: what may be cut off stands last. */
  function entry(one) {
    const names = (other) => `${other.client[0]} → ${other.server[0]}`;
    const alike = data.connections.some((other) => other !== one && names(other) === names(one));
    const port = alike ? ` port ${one.client[1].replace(/^.*:/, "")}` : "";
    const found = findings(one);
    return `${one.stream}: ${found ? `${counted(found, "finding")}, ` : ""}${one.client[0]}${port} → ${one.server[0]}`;
  }

  // The overview

  /** A button that goes to a packet. */
  function goes(packet, text) {
    return make("button", { type: "button", class: "go", on: { click: () => goTo(packet) } }, text);
  }

  function overview() {
    by("title").textContent = data.title;
    const [head, ...troubles] = data.overview;
    const known = `${data.title}: `;
    if (head) by("title").after(make("p", {}, head.text.startsWith(known) ? head.text.slice(known.length) : head.text));
    for (const one of troubles) {
      const text = numbered(one.text);
      const item = make("li", {}, one.packet ? goes(one.packet, text) : text);
      if (one.advice) item.append(make("div", { class: "advice" }, one.advice));
      by("overview").append(item);
    }
    by("contents").textContent = data.contents;
    for (const note of data.notes) by("notes").append(make("li", {}, note));
    data.connections.forEach((one, number) => {
      by("connection").append(make("option", { value: number, title: entry(one) }, entry(one)));
    });
  }

  // Which rows are shown

  function filters() {
    const rows = now().rows;
    const links = new Set(rows.map((row) => row.link).filter(Boolean));
    const rules = new Set(rows.flatMap((row) => (row.found || []).map((one) => one.rule)));
    for (const [id, names, all] of [["link", links, "all links"], ["rule", rules, "all rules"]]) {
      const any = make("option", { value: "" }, all);
      by(id).replaceChildren(any, ...[...names].map((name) => make("option", { value: name }, name)));
      by(id).disabled = names.size === 0;
    }
  }

  function wanted(row) {
    const [link, rule, words] = [by("link").value, by("rule").value, by("search").value.toLowerCase()];
    const [from, to] = [by("from"), by("to")].map((one) => parseFloat(one.value.replace(",", ".")));
    if (link && row.link !== link) return false;
    if (rule && !(row.found || []).some((one) => one.rule === rule)) return false;
    if (row.time !== undefined && (row.time / 1e9 < from || row.time / 1e9 > to)) return false;
    if (row.time === undefined && (from || to)) return false;
    if (!words) return true;
    const texts = [row.name, row.says, row.text, row.fields, ...(row.found || []).map(wording), row.packet];
    return texts.some((text) => text !== undefined && String(text).toLowerCase().includes(words));
  }

  // The ladder

  /** Text between the lifelines: a fold, a silence or a remark. */
  function between(row) {
    return make("div", { class: "lane" }, make("div", { class: "between" }, numbered(row.text)));
  }

  function lane(row) {
    const label = make("div", { class: "label" }, make("span", { class: "hidden" }, `${row.peer}: `),
      make("b", {}, row.name), ` ${row.says}`);
    const found = (row.found || []).map((one) =>
      make("div", { class: `found ${one.certain ? "error" : "possible"}` }, `× ${wording(one)}`));
    return make("div", { class: "lane" }, label, ...found);
  }

  function rowElement(row, number) {
    const arrow = row.kind === "arrow";
    const channel = arrow && row.channel >= 0 && now().channels ? `/${row.channel}` : "";
    const element = make("li",
      { role: "option", id: `row-${number}`, tabindex: -1, "aria-selected": "false",
        class: `${row.kind} ${row.peer === "server" ? "right" : ""}` },
      make("span", { class: "time" }, row.time === undefined ? "" : seconds(row.time)),
      make("span", { class: "packet" }, row.kind === "silence" ? "" : `${row.packet || ""}${channel}`),
      arrow ? lane(row) : between(row));
    return element;
  }

  let shown = []; // the rows that pass the filters, and their numbers
  let drawn = []; // those of them that are in the document

  /** What stands for the rows that are not in the document. */
  function more(number, which, way) {
    if (!number) return "";
    const move = () => {
      state.chosen = -1;
      state.first += (way * WINDOW) / 2;
      draw();
    };
    return make("li", { role: "option", class: "fold", "aria-selected": "false", on: { click: move } },
      make("span", {}), make("span", {}), between({ text: `${counted(number, `${which} row`)}: show them` }));
  }

  /** What the colours mean, if the ladder has any of them. */
  function legend(rows) {
    const found = rows.flatMap((row) => row.found || []);
    const entries = [
      [found.some((one) => one.certain), "error", "Red: a certain finding"],
      [found.some((one) => !one.certain), "possible", "Amber: only a possible finding"],
      [rows.some((row) => row.kind === "remark"), "possible boxed", "Boxed: a diagnosis"],
    ].filter(([any]) => any).map(([, kind, text]) => make("span", { class: kind }, text));
    return entries.length ? make("p", { class: "legend" }, ...entries) : "";
  }

  function ladder() {
    const one = now();
    const channels = new Set(one.rows.filter((row) => row.channel >= 0).map((row) => row.channel));
    one.channels = channels.size > 1;
    const peers = make("div", { class: "peers" }, ...["client", "server"].map((peer) =>
      make("div", {}, make("b", { class: peer }, one[peer][0]), make("span", { class: "dim" }, one[peer][1]))));
    shown = one.rows.map((row, number) => [row, number]).filter(([row]) => wanted(row));
    const list = make("ol", { role: "listbox", class: "ladder", id: "rows", tabindex: shown.length ? null : 0,
      "aria-label": `${one.heading}: ${shown.length} of ${counted(one.rows.length, "row")}` });
    const at = shown.findIndex(([, number]) => number === state.chosen);
    if (at >= 0 && (at < state.first || at >= state.first + WINDOW)) state.first = at - WINDOW / 2;
    state.first = Math.max(0, Math.min(state.first, shown.length - WINDOW));
    drawn = shown.slice(state.first, state.first + WINDOW);
    list.append(more(state.first, "earlier", -1));
    list.append(...drawn.map(([row, number]) => rowElement(row, number)));
    list.append(more(shown.length - state.first - drawn.length, "later", 1));
    if (!shown.length) list.append(make("li", { role: "option", class: "empty" }, "No row matches the filters."));
    by("picture").replaceChildren(legend(one.rows), peers, list);
    spread(list);
    arrows(list);
    if (at < 0) state.chosen = -1;
    const first = drawn.length ? by(`row-${state.chosen >= 0 ? state.chosen : drawn[0][1]}`) : null;
    if (first) first.tabIndex = 0;
    choose(state.chosen, false);
  }

  /** Distances as the times between frames, if that is asked for. */
  function spread(list) {
    list.style.setProperty("--row", `${Math.round(30 * state.zoom)}px`);
    if (!by("scale").checked) return;
    const timed = drawn.filter(([row]) => row.time !== undefined);
    if (timed.length < 2) return;
    const whole = timed[timed.length - 1][0].time - timed[0][0].time;
    let before = timed[0][0].time;
    for (const [row, number] of timed) {
      const gap = whole > 0 ? ((row.time - before) / whole) * timed.length * 60 * state.zoom : 0;
      by(`row-${number}`).style.marginTop = `${Math.max(0, Math.round(gap - 30 * state.zoom))}px`;
      before = Math.max(before, row.time);
    }
  }

  /** All arrows of the ladder, in one drawing behind the texts. */
  function arrows(list) {
    const old = list.parentNode.querySelector(".arrows");
    if (old) old.remove();
    const places = new Map(drawn.map(([, number]) => {
      const element = by(`row-${number}`);
      const label = element.querySelector(".label");
      return [number, element.offsetTop + (label ? label.offsetHeight + 3 : 18)];
    }));
    const drawing = svg("svg", { class: "arrows", "aria-hidden": "true", height: list.offsetHeight });
    const lanes = drawn.length ? by(`row-${drawn[0][1]}`).querySelector(".lane") : list;
    const width = lanes.offsetWidth;
    for (const [row, number] of drawn) {
      if (row.kind !== "arrow") continue;
      const y = places.get(number);
      let fall = 5;
      for (let later = row.lands; later > number; later -= 1) {
        if (places.has(later)) {
          fall = Math.max(fall, places.get(later) + 7 - y);
          break;
        }
      }
      const [start, end] = row.peer === "client" ? [0, width] : [width, 0];
      const back = row.peer === "client" ? -9 : 9;
      const kind = row.found ? worst(row.found) : row.peer;
      drawing.append(svg("g", { class: kind },
        svg("line", { class: `${kind}${row.lost ? " lost" : ""}`, x1: start, y1: y, x2: end, y2: y + fall }),
        svg("path", { d: `M${end} ${y + fall}l${back} -4l0 8z` })));
    }
    list.after(drawing);
    drawing.style.top = `${list.offsetTop}px`;
    drawing.style.left = `${list.offsetLeft + lanes.offsetLeft}px`;
    drawing.style.width = `${width}px`;
  }

  // One row

  /** Choose a row: its details are shown, and what its sender could have known is shaded. */
  function choose(number, focus) {
    if (number >= 0 && !by(`row-${number}`)) {
      state.chosen = number;
      draw();
    }
    for (const element of document.querySelectorAll('.ladder [aria-selected="true"]')) {
      element.setAttribute("aria-selected", "false");
      element.tabIndex = -1;
    }
    state.chosen = number;
    const element = number >= 0 ? by(`row-${number}`) : null;
    shade(element ? now().rows[number] : null, number);
    details(element ? now().rows[number] : null);
    if (!element) return;
    for (const other of document.querySelectorAll('.ladder [tabindex="0"]')) other.tabIndex = -1;
    element.setAttribute("aria-selected", "true");
    element.tabIndex = 0;
    if (focus) element.focus({ preventScroll: true });
    if (focus) element.scrollIntoView({ block: "nearest" });
  }

  /** Up to where the sender of the chosen frame had read the other stream for certain, for this row of it. */
  function proved(chosen, row) {
    if (!chosen.read || !SESSION.includes(row.name)) return chosen.must;
    return chosen.read[row.channel] || 0;
  }

  function shade(chosen, at) {
    for (const [row, number] of drawn) {
      const list = by(`row-${number}`).classList;
      const judged = chosen && chosen.acknowledged >= 0 && chosen.offset >= 0 && row.kind === "arrow" &&
        row.behind >= 0 && row.peer !== chosen.peer && number < at;
      const must = judged ? proved(chosen, row) : -1;
      list.toggle("read", Boolean(judged) && row.behind <= must);
      list.toggle("known", Boolean(judged) && row.behind > must && row.behind <= chosen.acknowledged);
      list.toggle("unknown", Boolean(judged) && row.behind > chosen.acknowledged);
    }
  }

  function details(row) {
    const parts = [];
    if (row) {
      parts.push(make("h2", {}, row.kind === "arrow" ? `${row.name}, packet ${row.packet}` : row.text));
      if (row.kind === "arrow") parts.push(make("p", { class: "dim" }, facts(row)));
      if (row.says) parts.push(make("p", {}, row.says));
      for (const one of row.found || []) {
        parts.push(make("p", { class: one.certain ? "error" : "possible" }, `× ${wording(one)}`),
          ...others(one.text));
      }
      if (row.fields) parts.push(make("h3", {}, "All fields"), make("pre", {}, row.fields));
      if (row.acknowledged >= 0) {
        const other = row.peer === "client" ? "server" : "client";
        parts.push(make("h3", {}, `What the ${row.peer} could and must have known`), make("p", { class: "key" },
          `Its packet acknowledges ${counted(row.acknowledged, "octet")} of the ${other}. `,
          make("span", { class: "read" }, "Read"), `: the frames of the ${row.peer} prove that it had read this. `,
          make("span", { class: "known" }, "Arrived"), ` before this frame was sent: the ${row.peer} could have read it. `,
          make("span", { class: "unknown" }, "In flight"), `: the ${row.peer} cannot have reacted to it.`));
      }
    }
    by("details").replaceChildren(...parts, ...listed());
  }

  function facts(row) {
    const octets = row.behind >= 0 ? `, ${counted(row.behind - row.offset, "octet")}` : "";
    const channel = row.channel >= 0 ? `, channel ${row.channel}` : "";
    return `by the ${row.peer}, ${seconds(row.time)} s${channel}${octets}${row.link ? `, link ${row.link}` : ""}`;
  }

  /** All findings and diagnoses of the connection, each a way to its place. */
  function listed() {
    const one = now();
    const parts = [make("h2", {}, one.heading), make("p", { class: "dim" }, `How it ended: ${one.ended}`)];
    const found = one.rows.flatMap((row, number) => (row.found || []).map((each) => [each, row, number]));
    const all = make("ul", {});
    for (const each of one.diagnoses) {
      all.append(make("li", { class: each.trouble ? "possible" : "" },
        each.packet ? goes(each.packet, numbered(each.text)) : numbered(each.text), ...others(each.text)));
    }
    for (const [each, row, number] of found.slice(0, 200)) {
      const button = { type: "button", class: "go", on: { click: () => visit(number) } };
      all.append(make("li", { class: each.certain ? "error" : "possible" },
        make("button", button, `packet ${row.packet}: ${wording(each)}`)));
    }
    const left = findings(one) - Math.min(found.length, 200);
    if (left) all.append(make("li", { class: "dim" }, `and ${counted(left, "more finding")} in \`amqpscope check\``));
    if (all.children.length) parts.push(make("h3", {}, "Findings and diagnoses"), all);
    else parts.push(make("p", {}, "Nothing was found on this connection."));
    return parts;
  }

  // Moving about

  /** Show the row, whatever the filters are. */
  function visit(number) {
    if (!wanted(now().rows[number])) clearFilters();
    show("ladder");
    choose(number, true);
    by(`row-${number}`).scrollIntoView({ block: "center" });
  }

  /** Show the frame of a packet, on whichever connection it is. */
  function goTo(packet) {
    const holds = (row) => row.kind === "arrow" ? row.packet === packet : packet >= row.packet && packet <= row.last;
    for (const [connection, one] of data.connections.entries()) {
      const rows = one.rows.map((row, number) => [row, number]).filter(([row]) => holds(row));
      const best = rows.find(([row]) => row.found) || rows[0];
      if (!best) continue;
      if (connection !== state.connection) setConnection(connection);
      visit(best[1]);
      return;
    }
  }

  function clearFilters() {
    for (const id of ["search", "link", "rule", "from", "to"]) by(id).value = "";
    draw();
  }

  function setConnection(number) {
    state.connection = number;
    state.chosen = -1;
    state.first = 0;
    by("connection").value = number;
    filters();
    draw();
  }

  /** The row that is so many rows further. */
  function step(by_) {
    const at = shown.findIndex(([, number]) => number === state.chosen);
    const next = shown[Math.min(Math.max(at + by_, 0), shown.length - 1)];
    if (next) choose(next[1], true);
  }

  /** The next row with a finding, or the one before. */
  function nextFinding(way) {
    const rows = now().rows;
    for (let at = state.chosen + way; at >= 0 && at < rows.length; at += way) {
      if (rows[at].found) return visit(at);
    }
    return undefined;
  }

  function states() {
    by("picture").replaceChildren(...statesView({ make, svg, goTo }, now(), data.diagrams));
  }

  let charted = 0; // the width that the charts are drawn for

  function flow() {
    charted = by("picture").clientWidth;
    by("picture").replaceChildren(...flowView({ make, svg, goTo }, now(), charted));
  }

  let wires = () => {}; // draws the lines of the map again, after the layout has changed

  function map() {
    const open = (number) => {
      setConnection(number);
      show("ladder");
    };
    const [elements, connect] = mapView({ make, svg, goTo, counted, findings, open }, data.connections, state.connection);
    by("picture").replaceChildren(...elements);
    wires = connect;
    wires();
  }

  const VIEWS = { ladder: ["Ladder", ladder], states: ["States", states], flow: ["Flow", flow], map: ["Map", map] };

  function show(view) {
    if (state.view === view) return;
    state.view = view;
    draw();
  }

  function draw() {
    for (const tab of by("tabs").children) {
      const selected = tab.id === `tab-${state.view}`;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
    }
    by("picture").setAttribute("aria-labelledby", `tab-${state.view}`);
    for (const tool of document.querySelectorAll("#tools .rows")) tool.hidden = state.view !== "ladder";
    VIEWS[state.view][1]();
    if (state.view !== "ladder") details(null);
  }

  function tabs() {
    for (const [id, [name]] of Object.entries(VIEWS)) {
      by("tabs").append(make("button", { role: "tab", type: "button", id: `tab-${id}`, "aria-controls": "picture",
        on: { click: () => show(id) } }, name));
    }
    by("tabs").addEventListener("keydown", (event) => {
      const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!way) return;
      const names = Object.keys(VIEWS);
      show(names[(names.indexOf(state.view) + way + names.length) % names.length]);
      by(`tab-${state.view}`).focus();
    });
  }

  const LADDER_KEYS = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => step(15), PageUp: () => step(-15),
    Home: () => step(-1e9), End: () => step(1e9), Enter: () => by("details").focus(),
  };
  const PAGE_KEYS = {
    n: () => nextFinding(1), p: () => nextFinding(-1), "/": () => { show("ladder"); by("search").focus(); }, "+": () => zoom(1.25),
    "-": () => zoom(0.8),
  };

  function keys(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const typing = /^(INPUT|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (typing) clearFilters();
      else if (by("details").contains(event.target) && state.chosen >= 0) choose(state.chosen, true);
      else choose(-1, false);
      if (typing) event.target.blur();
      return;
    }
    const inside = event.target.closest && event.target.closest(".ladder");
    const run = typing ? null : (inside && LADDER_KEYS[event.key]) || PAGE_KEYS[event.key.toLowerCase()];
    if (!run) return;
    event.preventDefault();
    run();
  }

  function zoom(times) {
    state.zoom = Math.min(Math.max(state.zoom * times, 0.6), 4);
    draw();
  }

  function listen() {
    by("connection").addEventListener("change", (event) => setConnection(Number(event.target.value)));
    for (const id of ["search", "from", "to"]) by(id).addEventListener("input", draw);
    for (const id of ["link", "rule", "scale"]) by(id).addEventListener("change", draw);
    by("smaller").addEventListener("click", () => zoom(0.8));
    by("larger").addEventListener("click", () => zoom(1.25));
    document.addEventListener("keydown", keys);
    by("picture").addEventListener("click", (event) => {
      const row = event.target.closest('[role="option"][id]');
      if (row) choose(Number(row.id.slice(4)), true);
    });
    by("picture").addEventListener("mouseover", (event) => {
      const row = event.target.closest('.ladder [role="option"][id]');
      if (row && state.chosen < 0) details(now().rows[Number(row.id.slice(4))]);
    });
    const again = () => {
      if (state.view === "ladder" && by("rows")) arrows(by("rows"));
      if (state.view === "flow" && by("picture").clientWidth !== charted) flow();
      if (state.view === "map") wires();
    };
    window.addEventListener("resize", again);
    window.addEventListener("beforeprint", again);
  }

  overview();
  if (data.connections.length) {
    tabs();
    listen();
    setConnection(0);
  } else {
    for (const one of document.querySelectorAll("#tools, #picture, #details, footer")) one.hidden = true;
  }
  document.documentElement.dataset.ready = "yes";
})();
