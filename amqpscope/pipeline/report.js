// The page of `amqpscope pipeline report`. Every number is a button that shows the query for its rows.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const FIRST = 12; // rows of a table that are shown before somebody asks for all
  const main = by("main");
  const answer = (name) => data.answers[name] || { title: "", groups: [], rows_sql: "", more: false };
  const sum = (groups, key) => groups.reduce((total, one) => total + (one[key] || 0), 0);

  // Values

  const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
  const none = (value) => (value === null || value === "" ? make("span", { class: "dim" }, "none") : value);
  const moment = (value) => (value ? value.slice(0, 16).replace("T", " ") : "–");

  function duration(microseconds) {
    if (microseconds === null) return "–";
    const [value, unit] = microseconds < 1e3 ? [microseconds, "µs"] :
      microseconds < 1e6 ? [microseconds / 1e3, "ms"] : [microseconds / 1e6, "s"];
    return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)} ${unit}`;
  }

  function octets(value) {
    const [size, unit] = value < 1e6 ? [value / 1e3, "kB"] : value < 1e9 ? [value / 1e6, "MB"] : [value / 1e9, "GB"];
    return `${size < 10 ? size.toFixed(1) : size.toFixed(0)} ${unit}`;
  }

  function severity(one) {
    const possible = one.certainty === "possible";
    return make("span", { class: `word ${possible ? "possible" : `severity-${one.severity}`}` },
      `${possible ? "possible " : ""}${one.severity}`);
  }

  // From a number to its rows

  /** A command, and a button that copies it. */
  function command(text) {
    const shown = make("pre", { tabindex: 0 }, text);
    const copy = make("button", { type: "button", on: { click: () => copied(shown, copy) } }, "Copy");
    return make("div", { class: "command" }, shown, copy);
  }

  /** Copy a text, or at least select it, where a page may not write to the clipboard. */
  async function copied(element, button) {
    const range = document.createRange();
    range.selectNodeContents(element);
    window.getSelection().removeAllRanges();
    window.getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(element.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
  }

  /** The query for the rows of a group, or of all groups; and findings among them. */
  function lead(name, group) {
    const asked = answer(name);
    const where = group && group.where ? ` WHERE ${group.where}` : "";
    const parts = [make("div", { class: "dim" }, "The rows:"), command(`${data.command} "${asked.rows_sql}${where}"`)];
    const alike = (one) => ["rule", "severity", "certainty", "product"].every((key) => one[key] === group[key]);
    const examples = name === "rules" ? answer("examples").groups.filter(alike) : [];
    if (name === "rules") parts.push(command(`amqpscope rules explain ${group.rule}`));
    if (examples.length) {
      parts.push(make("div", { class: "dim" }, group.findings > examples.length ? "The first findings:" : "The findings:"),
        make("ul", {}, ...examples.map((one) => make("li", {}, one.message,
          make("div", { class: "dim" }, `${moment(one.time)}, ${one.peer || ""} of ${one.connection || "several connections"}`),
          one.why ? command(one.why) : ""))));
    }
    return make("div", { class: "lead" }, ...parts);
  }

  /** A number that opens and closes something. open: gives the element; place: puts it into the document. */
  function opener(text, label, open, place) {
    let opened = null;
    const button = make("button", { type: "button", class: "go", "aria-expanded": "false", "aria-label": label || null, on: {
      click: () => {
        if (opened) opened.remove();
        else place(opened = open());
        if (!opened.isConnected) opened = null;
        button.setAttribute("aria-expanded", String(opened !== null));
      } } }, text);
    return button;
  }

  // Tables

  /** A table of an answer. columns: title, what a cell shows of a group, class, by what it is sorted, and
   *  for which groups it `leads` to the rows. first: rows that are shown before somebody asks for all. */
  function table(name, columns, first = FIRST) {
    const asked = answer(name);
    const body = make("tbody", {});
    const heads = columns.map((column, at) => make("th", { scope: "col", class: column.kind, "aria-sort": "none" },
      make("button", { type: "button", on: { click: () => sort(at) } }, column.title)));
    let rows = asked.groups.map((group) => [group, row(group)]);
    let all = rows.length <= first + (first === FIRST ? 3 : 0);

    function row(group) {
      const line = make("tr", {});
      for (const column of columns) {
        const shown = column.cell(group);
        const cell = column.leads && column.leads(group) ? opener(shown, `${shown} ${column.title}: show the query`, () => below(group),
          (element) => line.after(element)) : shown;
        line.append(make("td", { class: column.kind, "data-title": column.title }, cell));
      }
      return line;
    }

    const below = (group) => make("tr", { class: "rows" }, make("td", { colspan: columns.length }, lead(name, group)));

    function sort(at) {
      const column = columns[at];
      const down = heads[at].getAttribute("aria-sort") !== "descending";
      const way = down ? -1 : 1;
      const key = (group) => column.key(group) ?? (typeof column.key(rows[0][0]) === "number" ? -1 : "");
      rows.sort(([one], [other]) => way * (key(one) > key(other) ? 1 : key(one) < key(other) ? -1 : 0));
      heads.forEach((head, place) => head.setAttribute("aria-sort", place === at ? (down ? "descending" : "ascending") : "none"));
      fill();
    }

    function fill() {
      for (const open of body.querySelectorAll('[aria-expanded="true"]')) open.click();
      rows.forEach(([, line], at) => {
        line.hidden = !all && at >= first;
        line.classList.toggle("further", line.hidden);
      });
      body.replaceChildren(...rows.map(([, line]) => line));
      more.hidden = all;
    }

    const more = make("button", { type: "button", class: "more", on: { click: () => { all = true; fill(); } } },
      `Show all ${rows.length}`);
    fill();
    const parts = [make("div", { class: "scroll" }, make("table", { "aria-labelledby": `title-${name}` },
      make("thead", {}, make("tr", {}, ...heads)), body)), more];
    if (asked.more) parts.push(make("p", { class: "dim" }, "Further groups are not in the report: ", everything(name)));
    return parts;
  }

  /** A button for the query of all rows of a question. */
  function everything(name) {
    return opener("the query for all rows", "", () => lead(name, null), (element) => placeAfter(name, element));
  }

  const placeAfter = (name, element) => by(`section-${name}`).append(element);

  const text = (title, key, kind) => ({ title, cell: (one) => none(one[key]), key: (one) => one[key], kind: kind || "name" });
  const word = (title, key) => text(title, key, "word");
  const figure = (title, key, show) => ({ title, kind: "number", cell: (one) => (show || number)(one[key]), key: (one) => one[key] });
  const leads = (title, key) => ({ ...figure(title, key), leads: () => true });
  const ORDER = { error: 0, warning: 2, note: 4 };
  const kind = { title: "Severity", kind: "word", cell: severity,
    key: (one) => ORDER[one.severity] + (one.certainty === "possible" ? 1 : 0) };

  /** A section; one without content says so. */
  function section(name, title, parts, nothing, words) {
    const missing = data.answers[name] === undefined;
    const empty = !missing && !answer(name).groups.length;
    const inside = missing ? [make("p", { class: "dim" }, data.left_out[name] || "The lake does not have the tables for this.")] :
      empty ? [make("p", { class: "dim" }, nothing)] : [words ? make("p", { class: "dim" }, words) : "", ...parts()];
    main.append(make("section", { id: `section-${name}`, "aria-labelledby": `title-${name}` },
      make("h2", { id: `title-${name}` }, title), ...inside));
    by("contents").append(make("a", { href: `#section-${name}` }, title));
  }

  // The parts of the report

  function tiles() {
    const place = make("div", {});
    const tile = (title, big, name, group, small) => {
      let text = opener(big, `${big} ${title}: show the query`, () => lead(name, group), (element) => place.replaceChildren(element));
      return make("dl", { class: "tile" }, make("dt", {}, title), make("dd", {}, text),
        ...small.map((line) => make("dd", { class: "dim" }, line)));
    };
    const files = answer("files").groups;
    const found = answer("severities").groups;
    const connections = answer("connections").groups;
    const of = (severity_) => found.filter((one) => one.severity === severity_);
    const shown = [];
    const unread = files.filter((one) => one.status !== "ok");
    shown.push(tile("files", number(sum(files, "files")), "files", null,
      [octets(sum(files, "octets")), unread.length ? `${number(sum(unread, "files"))} not read, or in part` : "all read"]));
    if (data.answers.connections) {
      shown.push(tile("connections", number(sum(connections, "connections")), "connections", null,
        connections.map((one) => `${number(one.connections)} ${one.protocol || "without data"}`).slice(0, 3)));
      shown.push(tile("messages", number(sum(connections, "messages")), "connections", null,
        [`in ${number(sum(connections, "frames"))} frames`, `${number(sum(connections, "missing"))} octets not captured`]));
    }
    for (const level of data.answers.severities ? ["error", "warning", "note"] : []) {
      const certain = of(level).filter((one) => one.certainty === "certain");
      const accepted = sum(of(level).filter((one) => one.accepted), "findings");
      shown.push(tile(`certain ${level}s`, number(sum(certain, "findings")), "severities",
        { where: `severity = '${level}' AND certainty = 'certain'` },
        [`${number(sum(of(level), "findings") - sum(certain, "findings"))} possible`,
          ...(accepted ? [`${number(accepted)} of all accepted`] : [])]));
    }
    if (data.answers.diagnoses) {
      shown.push(tile("diagnoses", number(sum(answer("diagnoses").groups, "times")), "diagnoses", null,
        [counted(answer("diagnoses").groups.length, "kind")]));
    }
    main.append(make("section", { "aria-label": "Totals" }, make("div", { class: "tiles" }, ...shown), place));
  }

  const share = (broken, all) => `${number(broken)} of ${number(all)}`;

  function changes() {
    const clear = (one) => one.chance <= data.chance;
    const sides = (side) => ({ title: side === "newer" ? "Newer version" : "Older version", kind: "name",
      cell: (one) => one[side], key: (one) => one[side] });
    const times = (side) => ({ title: "Breaks it in", kind: "number", cell: (one) =>
      share(one[`${side}_broken`], one[`${side}_connections`]), key: (one) => one[`${side}_broken`],
    leads: (one) => one[`${side}_broken`] > 0 });
    return table("changes", [
      { title: "Change", kind: "word", key: (one) => (clear(one) ? 0 : 2) + (one.change === "new" ? 0 : 1),
        cell: (one) => make("span", { class: clear(one) ? (one.change === "new" ? "severity-error" : "server") : "dim" },
          `${one.change}${clear(one) ? "" : ", maybe by chance"}`) },
      word("Rule", "rule"), kind, word("Peer", "peer"), sides("older"), times("older"), sides("newer"), times("newer"),
      { title: "Chance", kind: "number", cell: (one) => (one.chance < 0.001 ? "< 0.1 %" : `${(one.chance * 100).toFixed(1)} %`),
        key: (one) => one.chance },
    ], answer("changes").groups.filter(clear).length);
  }

  function heat() {
    const { days, more } = data.heat;
    const most = Math.max(...days.flatMap((day) => day.findings), 1);
    const level = (count) => Math.min(1 + Math.floor((Math.log(count) / Math.log(most + 1)) * 4), 4);
    const place = make("div", {});
    const groups = answer("hours").groups;
    const hours = [...Array(24).keys()];
    const two = (hour) => String(hour).padStart(2, "0");

    function cell(day, hour) {
      const count = day.findings[hour];
      if (count === null) return make("td", {});
      if (!count) return make("td", { class: "quiet", title: "connections, nothing found" }, "·");
      const begin = `${day.date}T${two(hour)}`;
      const here = groups.filter((one) => one.hour && one.hour.startsWith(begin));
      const says = here.map((one) => counted(one.findings, one.severity)).join(", ");
      const worst = ["error", "warning", "note"].find((level_) => here.some((one) => one.severity === level_));
      const hourly = { where: here[0].where.split(" AND ")[0] };
      const open = () => {
        const shown = lead("hours", hourly);
        shown.prepend(make("b", {}, `${day.date} ${two(hour)}:00: ${says}`));
        return shown;
      };
      return make("td", { class: `heat-${worst} level-${level(count)}`, title: says },
        opener(number(count), `${number(count)} on ${day.date} at ${two(hour)}:00: ${says}`, open, (element) => place.replaceChildren(element)));
    }

    const head = make("tr", {}, make("th", { scope: "col" }, make("span", { class: "hidden" }, "Day")),
      ...hours.map((hour) => make("th", { scope: "col" }, two(hour))));
    const body = days.map((day) => make("tr", {}, make("th", { scope: "row" }, day.date), ...hours.map((hour) => cell(day, hour))));
    const key = ["error", "warning", "note"].map((one) => make("span", { class: "key" },
      make("span", { class: `sample heat-${one} level-3` }), one === "note" ? "only notes" : `${one}s`));
    return [make("p", { class: "dim" }, ...key, "The colour shows the worst finding of the hour, its strength how many there are."),
      make("div", { class: "scroll" }, make("table", { class: "heat", "aria-labelledby": "title-hours" }, make("thead", {}, head), make("tbody", {}, ...body))),
      more ? make("p", { class: "dim" }, "Earlier days are left out.") : "", place];
  }

  /** Where p50, p95 and p99 of a group are between those of all, on a scale of powers of ten. */
  function range(groups) {
    const values = groups.flatMap((one) => [one.p50, one.p95, one.p99]).filter((value) => value !== null && value > 0);
    const [low, high] = [Math.log10(Math.min(...values, 1e6)), Math.log10(Math.max(...values, 1))];
    const x = (value) => 5 + ((Math.log10(Math.max(value, 0.001)) - low) / Math.max(high - low, 0.1)) * 140;
    return (one) => (one.p50 === null ? "" : svg("svg", { class: "range", viewBox: "0 0 150 12", "aria-hidden": "true" },
      svg("line", { x1: x(one.p50), x2: x(one.p99), y1: 6, y2: 6 }), svg("circle", { cx: x(one.p50), cy: 6, r: 4 }),
      svg("circle", { cx: x(one.p95), cy: 6, r: 2.5 }), svg("circle", { cx: x(one.p99), cy: 6, r: 2.5 })));
  }

  const PERCENTILES = ["p50", "p95", "p99"];

  /** The latencies of an address over time: hours that follow one another are joined. */
  function chart(groups) {
    const [WIDTH, HEIGHT, LEFT, BOTTOM] = [560, 150, 58, 126];
    const points = groups.map((one) => ({ ...one, at: Date.parse(one.hour) })).sort((one, other) => one.at - other.at);
    const [first, last] = [points[0].at, Math.max(points[points.length - 1].at, points[0].at + 1)];
    const values = points.flatMap((one) => PERCENTILES.map((name) => Math.max(one[name], 1)));
    const low = Math.floor(Math.log10(Math.min(...values)));
    const high = Math.max(Math.ceil(Math.log10(Math.max(...values))), low + 1);
    const x = (at) => LEFT + 6 + ((at - first) / (last - first)) * (WIDTH - LEFT - 14);
    const y = (value) => BOTTOM - ((Math.log10(Math.max(value, 1)) - low) / (high - low)) * (BOTTOM - 10);
    const { address, sender } = points[0];
    const title = `${address === null ? "no address" : address}, sent by the ${sender}`;
    const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": `${title}: p99 from ${duration(Math.min(...points.map((one) => one.p99)))} to ${duration(Math.max(...points.map((one) => one.p99)))}` });
    for (let power = low; power <= high; power += 1) {
      drawing.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(10 ** power), y2: y(10 ** power) }),
        svg("text", { x: LEFT - 6, y: y(10 ** power) + 4, "text-anchor": "end" }, duration(10 ** power)));
    }
    for (const name of PERCENTILES) {
      let line = "";
      points.forEach((one, at) => {
        const joined = at && one.at - points[at - 1].at <= 3600e3;
        line += `${joined ? "L" : "M"}${x(one.at).toFixed(1)} ${y(one[name]).toFixed(1)}`;
      });
      drawing.append(svg("path", { class: `line ${name}`, d: line }));
      for (const one of points) {
        drawing.append(svg("circle", { class: name, cx: x(one.at), cy: y(one[name]), r: points.length > 40 ? 1.5 : 3 },
          svg("title", {}, `${moment(one.hour)}: ${name} ${duration(one[name])} of ${number(one.settled)}`)));
      }
    }
    drawing.append(svg("text", { x: LEFT, y: HEIGHT - 8 }, moment(points[0].hour)),
      svg("text", { x: WIDTH, y: HEIGHT - 8, "text-anchor": "end" }, moment(points[points.length - 1].hour)));
    return make("figure", {}, make("figcaption", {}, make("b", {}, title)), drawing);
  }

  function latency() {
    const ranged = range(answer("latency").groups);
    const parts = table("latency", [text("Address", "address"), word("Sender", "sender"), leads("Deliveries", "deliveries"),
      figure("Settled", "settled"), ...PERCENTILES.map((name) => figure(name, name, duration)),
      { title: "p50 to p99", kind: "", cell: ranged, key: (one) => one.p99 }]);
    const series = new Map();
    for (const one of answer("latency_hours").groups) {
      const key = JSON.stringify([one.address, one.sender]);
      if (one.hour) series.set(key, [...(series.get(key) || []), one]);
    }
    const drawn = [...series.values()].filter((one) => one.length > 1)
      .sort((one, other) => other.length - one.length || sum(other, "settled") - sum(one, "settled")).slice(0, 6);
    if (!drawn.length) return parts;
    const key = PERCENTILES.map((name) => make("span", { class: "key" },
      svg("svg", { viewBox: "0 0 30 8", "aria-hidden": "true" }, svg("line", { class: name, x1: 0, x2: 30, y1: 4, y2: 4 })), name));
    return [...parts, make("h3", {}, "By hour"), make("p", { class: "dim" }, ...key,
      "Hours that follow one another are joined. ", everything("latency_hours")),
    make("div", { class: "charts", id: "section-latency_hours" }, ...drawn.map(chart))];
  }

  const longest = { title: "Longest", kind: "number", key: (one) => one.longest,
    cell: (one) => (one.longest === null ? "–" : duration(one.longest * 1e6)) };

  function report() {
    by("title").textContent = `Report of ${data.lake}`;
    const span = answer("span").groups[0];
    if (span && span.since) by("span").textContent = `Connections from ${moment(span.since)} to ${moment(span.until)} (UTC)`;
    tiles();
    const earlier = data.since ? ` Compared with the run ${data.since}.` : "";
    section("new_findings", "New findings", () => table("new_findings", [word("Rule", "rule"), kind,
      text("Product and version", "product"), text("Finding", "message"), leads("Findings", "findings"),
      figure("Connections", "connections")]), `There are no new findings.${earlier}`,
    `The earlier run had no finding with the same fingerprint.${earlier}`);
    section("new_diagnoses", "New diagnoses", () => table("new_diagnoses", [word("Diagnosis", "code"),
      text("Has to act", "whose_move"), text("About", "subject"), leads("Times", "times"),
      figure("Connections", "connections"), longest]), `There are no new diagnoses.${earlier}`,
    `The earlier run had none with the same code, about the same, that waits for the same peer.${earlier}`);
    section("changes", "After an upgrade", changes, "No rule is broken by only one of two successive versions of a product.",
      "Rules that only one of two successive versions of a product breaks: in how many of its connections. Chance: the " +
      "probability of such a difference if the version does not matter. It is high if a version has few connections.");
    section("rules", "Broken rules", () => table("rules", [word("Rule", "rule"), kind, text("Product and version", "product"),
      leads("Findings", "findings"), figure("Connections", "connections")]), "No rule is broken.",
    "By product and version of the peer at fault. A number shows the query for its findings, and the first findings.");
    section("hours", "Findings by hour", heat, "Nothing was found.",
      "A dot: connections began in this hour, and nothing was found. Empty: nothing was captured.");
    const where = make("div", { class: "pair" });
    const before = main.childElementCount;
    section("containers", "By container", () => table("containers", [text("Container", "container"), kind,
      leads("Findings", "findings"), figure("Rules", "rules")]), "Nothing was found.", "Of the peer at fault.");
    section("addresses", "By address", () => table("addresses", [text("Address", "address"), leads("Findings", "findings"),
      figure("Rules", "rules")]), "No finding is about a link.", "Of the link that a finding is about.");
    where.append(...[...main.children].slice(before));
    main.append(where);
    section("latency", "Settlement latency", latency, "There are no deliveries.",
      "From the first frame of a delivery to its settlement by the receiver.");
    section("starved", "Senders without credit", () => table("starved", [word("Diagnosis", "code"), text("Address", "address"),
      word("Has to act", "whose_move"), text("Its product", "product"), text("Its container", "container"),
      leads("Times", "times"), figure("Connections", "connections"), longest]), "No sender waited for credit.",
    "The receiver grants no credit, window or prefetch.");
    section("diagnoses", "All diagnoses", () => table("diagnoses", [word("Diagnosis", "code"), text("Has to act", "whose_move"),
      leads("Times", "times"), figure("Connections", "connections"), longest]), "Nothing was diagnosed.");
    section("errors", "Errors sent by peers", () => table("errors", [text("Condition or reply code", "condition"), word("In", "in"),
      word("Peer", "peer"), text("Product and version", "product"), leads("Times", "times")]), "No peer sent an error.");
    section("products", "Products", () => table("products", [text("Product and version", "product"), word("Peer", "peer"),
      text("Protocol", "protocol", "word"), leads("Connections", "connections"), figure("First", "since", moment),
      figure("Last", "until", moment)]), "There are no connections.");
    section("unread", "Inputs not read", () => table("unread", [text("Input", "capture"), word("Status", "status"),
      word("Reason", "reason"), text("Detail", "detail"), leads("Octets", "octets")]), "All inputs were read to their ends.");
  }

  report();
  document.documentElement.dataset.ready = "yes";
})();
