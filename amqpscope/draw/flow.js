// The view of the flow: what a connection has in hand over time, as step charts on one time axis.

/** Draws the charts of a connection. tools: `make`, `svg` and `goTo` of the page. room: pixels in a row. */
function flowView(tools, connection, room) {
  const { make, svg } = tools;
  // As wide as they are shown: so their text is never small.
  const [WIDTH, HEIGHT, LEFT, TOP] = [Math.min(Math.max(room, 280), 1100), 140, 84, 10];
  const flow = connection.flow;
  const times = [...flow.charts.flatMap((chart) => chart.points.map((point) => point[0])), connection.last];
  const last = Math.max(...times.slice(0, 20000), 1);
  const x = (time) => LEFT + (Math.min(Math.max(time, 0), last) / last) * (WIDTH - LEFT - 10);
  const text = (seconds) => `${seconds >= 1 ? seconds.toFixed(2) : seconds.toFixed(4)} s`;

  /** What was starved or closed, from when to when, and who has to act. */
  const marked = connection.diagnoses.filter((one) => one.from !== undefined && one.until > one.from);
  const named = new Set(flow.charts.map((chart) => chart.of));

  /** Those of a chart: those about its link or channel, and those about none that has a chart. */
  const bands = (chart) => marked.filter((one) => one.subject === chart.of || !named.has(one.subject));

  function drawing(chart) {
    const values = chart.points.map((point) => point[1]);
    const high = Math.max(...values, 1);
    const low = Math.min(...values, 0);
    const y = (value) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - TOP - 22);
    const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": `${chart.title}: lowest ${Math.min(...values)}, highest ${high}, last ${values[values.length - 1]}` });
    for (const one of bands(chart)) {
      picture.append(svg("rect", { class: `band ${one.who || "nobody"}`, x: x(one.from), y: TOP,
        width: Math.max(x(one.until) - x(one.from), 2), height: HEIGHT - TOP - 22 },
      svg("title", {}, one.text)));
    }
    for (const value of new Set([low, 0, high])) {
      picture.append(svg("line", { class: "grid", x1: LEFT, y1: y(value), x2: WIDTH - 10, y2: y(value) }),
        svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
    }
    let line = "";
    for (const [time, value] of chart.points) {
      line += line ? `H${x(time).toFixed(1)}V${y(value).toFixed(1)}` : `M${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    }
    picture.append(svg("path", { class: "line", d: `${line}H${x(last).toFixed(1)}` }),
      svg("text", { x: LEFT, y: HEIGHT - 6 }, "0 s"),
      svg("text", { x: WIDTH - 10, y: HEIGHT - 6, "text-anchor": "end" }, text(last / 1e9)));
    return make("figure", {}, make("figcaption", {}, make("b", {}, chart.title),
      `: lowest ${Math.min(...values)}, highest ${Math.max(...values)}, last ${values[values.length - 1]}`), picture);
  }

  /** How long messages waited to be settled or confirmed, in powers of two. */
  function latencies() {
    const counts = flow.latencies;
    const whole = counts.reduce((sum, one) => sum + one, 0);
    if (!whole) return [];
    const most = Math.max(...counts);
    const first = counts.findIndex(Boolean);
    const end = counts.length - [...counts].reverse().findIndex(Boolean);
    const rows = [];
    for (let at = first; at < end; at += 1) {
      const bar = svg("svg", { class: "bar", viewBox: "0 0 300 12", "aria-hidden": "true" },
        svg("rect", { x: 0, y: 1, width: (counts[at] / most) * 300, height: 10 }));
      rows.push(make("tr", {}, make("th", { scope: "row" }, `under ${text(2 ** at / 1e6)}`),
        make("td", {}, String(counts[at])), make("td", {}, bar)));
    }
    return [make("h2", {}, "How long messages waited to be settled or confirmed"),
      make("table", { class: "latencies" }, make("tbody", {}, ...rows))];
  }

  const parts = flow.charts.map(drawing);
  if (!parts.length) parts.push(make("p", { class: "empty" }, "Nothing of this connection is limited or settled."));
  if (flow.more) parts.push(make("p", { class: "dim" }, "Further links and channels are left out."));
  const list = marked.map((one) => make("li", { class: one.who || "" }, make("button",
    { type: "button", class: "go", on: { click: () => tools.goTo(one.packet) } }, one.text)));
  const key = marked.length ? [make("p", {}, "Shaded: who has to act. ", make("span", { class: "client" }, "client"),
    ", ", make("span", { class: "server" }, "server")), make("ul", {}, ...list)] : [];
  return [...key, ...parts, ...latencies()];
}
