// The view of the state diagrams: the specification's states and transitions, and the path that was taken.

/** Draws the paths of a connection. tools: `make` and `svg` of the page; visit(packet) goes to a frame. */
function statesView(tools, connection, diagrams) {
  const { make, svg } = tools;
  const [WIDTH, HEIGHT, BOX, TALL, LINE] = [214, 66, 122, 28, 6];

  /** Columns by the number of transitions from the start, and rows within a column. */
  function places(diagram) {
    const depth = new Map([[diagram.start, 0]]);
    const queue = [diagram.start];
    while (queue.length) {
      const state = queue.shift();
      for (const [from, to] of diagram.edges) {
        if (from === state && !depth.has(to)) {
          depth.set(to, depth.get(state) + 1);
          queue.push(to);
        }
      }
    }
    const rows = new Map();
    const found = new Map();
    for (const state of diagram.states) {
      const column = depth.has(state) ? depth.get(state) : 0;
      const row = rows.get(column) || 0;
      rows.set(column, row + 1);
      found.set(state, [column * WIDTH + 4, row * HEIGHT + 24]);
    }
    const tallest = Math.max(...rows.values());
    return [found, Math.max(...rows.keys()) * WIDTH + BOX + 40, tallest * HEIGHT + 30];
  }

  /** The middle of the side of a box that looks at the other box, and the curve between both. */
  function curve(from, to) {
    const forward = to[0] > from[0];
    if (from === to) {
      const [x, y] = [from[0] + BOX / 2, from[1]];
      return [`M${x - 14} ${y}C${x - 22} ${y - 20} ${x + 22} ${y - 20} ${x + 14} ${y}`, x, y - 17];
    }
    if (to[0] === from[0]) {
      const [x, y, v] = [from[0] + BOX, from[1] + TALL / 2, to[1] + TALL / 2];
      return [`M${x} ${y}C${x + 34} ${y} ${x + 34} ${v} ${x + LINE} ${v}`, x + 30, (y + v) / 2 + 4];
    }
    if (forward) {
      const [x, y, u, v] = [from[0] + BOX, from[1] + TALL / 2, to[0], to[1] + TALL / 2];
      const bend = (u - x) / 2;
      return [`M${x} ${y}C${x + bend} ${y} ${u - bend} ${v} ${u - LINE} ${v}`, (x + u) / 2, (y + v) / 2 - 5];
    }
    const [x, y, u, v] = [from[0] + BOX / 2, from[1] + TALL, to[0] + BOX / 2, to[1] + TALL];
    const low = Math.max(y, v) + 26;
    return [`M${x} ${y}C${x} ${low} ${u} ${low} ${u} ${v + LINE}`, (x + u) / 2, low - 4];
  }

  function head(path, kind) {
    const [, x, y] = path.match(/ ([\d.-]+) ([\d.-]+)$/) || [];
    if (x === undefined) return "";
    return svg("circle", { class: kind, cx: x, cy: y, r: 3 });
  }

  /** Whether the judge found a certain fault in the frame of a step. */
  function faulty(step) {
    const word = step[1].split(" ")[1].split("(")[0].toLowerCase().replace("hdr", "header");
    return step[4] && connection.rows.some((row) =>
      row.packet === step[0] && (row.found || []).some((one) => one.certain) && row.name.split(".").pop() === word);
  }

  function drawing(path) {
    const diagram = diagrams[path.diagram];
    const [at, width, height] = places(diagram);
    const taken = new Map();
    for (const step of path.steps) {
      const key = `${step[2]}>${step[3]}`;
      if (!taken.has(key)) taken.set(key, []);
      taken.get(key).push(step);
    }
    const entered = new Set([...path.steps.flatMap((step) => [step[2], step[3]])]);
    const picture = svg("svg", { class: "states", viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${path.of}: ${path.steps.map((step) => `${step[1]} to ${step[3]}`).join(", ")}` });
    // Text of 12 px: it is never smaller than 11 px, the diagram scrolls instead.
    picture.style.maxWidth = `${width}px`;
    picture.style.minWidth = `${Math.ceil((width * 11) / 12)}px`;
    const known = new Set(diagram.edges.map(([from, to]) => `${from}>${to}`));
    const extra = [...taken.keys()].filter((key) => !known.has(key)).map((key) => key.split(">"));
    const labels = [];
    for (const [from, to] of [...diagram.edges, ...extra]) {
      const steps = taken.get(`${from}>${to}`);
      if (!at.has(from) || !at.has(to) || (from === to && !steps)) continue;
      const kind = steps ? (steps.some(faulty) ? "illegal" : "taken") : "quiet";
      const [line, x, y] = curve(at.get(from), at.get(to));
      picture.append(svg("path", { class: `edge ${kind}`, d: line }), head(line, `head ${kind}`));
      if (!steps) continue;
      const words = [...new Set(steps.map((step) => step[1]))].slice(0, 3).join(", ");
      labels.push(svg("text", { class: `label ${kind}`, x, y, "text-anchor": "middle" }, words));
    }
    for (const [state, [x, y]] of at) {
      const kind = state === path.state ? "last" : entered.has(state) ? "entered" : "quiet";
      picture.append(svg("rect", { class: `state ${kind}`, x, y, width: BOX, height: TALL, rx: 6 }),
        svg("text", { class: `state ${kind}`, x: x + BOX / 2, y: y + 20, "text-anchor": "middle" }, state));
    }
    picture.append(...labels);
    return make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `diagram of ${path.of}` }, picture);
  }

  function stepItem(step) {
    const text = `packet ${step[0]}: ${step[1]}, ${step[2]} → ${step[3]}`;
    const button = make("button", { type: "button", class: "go", on: { click: () => tools.goTo(step[0]) } }, text);
    return make("li", { class: faulty(step) ? "error" : "" }, button);
  }

  const parts = connection.paths.map((path) => make("details", { class: "path", open: null },
    make("summary", {}, make("b", {}, path.of), ` ends in ${path.state}`,
      path.steps.some(faulty) ? make("span", { class: "error" }, " × with a finding") : ""),
    drawing(path), make("ol", { class: "steps" }, ...path.steps.map(stepItem)),
    path.more ? make("p", { class: "dim" }, `and ${path.more} more steps`) : ""));
  parts.forEach((part, number) => {
    part.open = number < 4 || connection.paths[number].steps.some(faulty);
  });
  if (!parts.length) parts.push(make("p", { class: "empty" }, "No frame of this connection is in a state diagram."));
  if (connection.morePaths) parts.push(make("p", { class: "dim" }, "Further paths are left out."));
  const key = make("p", { class: "dim" }, "The states and transitions of the specification. Bold: the path that was ",
    "taken. Filled: the last state. Red: the frame has a certain finding.");
  return [key, ...parts];
}
