// The map: clients, their connections with sessions and links, and the places on the servers that these use.

/** Draws the map of all connections. tools: `make`, `svg`, `goTo`, `counted` and `findings` of the page; open(number)
 *  shows a connection. Gives the elements, and what draws the wires when the elements are in the document. */
function mapView(tools, connections, chosen) {
  const { make, svg, counted } = tools;
  const host = (text) => text.replace(/^\w+ /, "").replace(/:\d+$/, "");
  const rate = (number) => (number ? `, ${number < 10 ? number : Math.round(number)}/s` : "");
  const wires = []; // the elements at both ends, the class, and how many messages
  const clients = new Map();
  const brokers = new Map();

  function went(line) {
    const refused = line.refused ? `, ${line.refused} refused` : "";
    return `${counted(line.messages, "message")}${rate(line.rate)}${refused}`;
  }

  /** The client of a connection, which may have others. */
  function clientOf(one) {
    const name = one.client[0] === "client" ? host(one.client[1]) : one.client[0];
    if (!clients.has(name)) clients.set(name, { name, addresses: new Set(), connections: 0 });
    const client = clients.get(name);
    client.addresses.add(host(one.client[1]));
    client.connections += 1;
    return client;
  }

  /** The server of a connection, with the places of its virtual host. */
  function brokerOf(one) {
    const inside = one.map.host && one.map.host !== "/" ? `, virtual host ${one.map.host}` : "";
    const key = `${one.server.join(" ")}${inside}`;
    if (!brokers.has(key)) brokers.set(key, { title: one.server[0], dim: one.server[1] + inside, places: new Map() });
    return brokers.get(key);
  }

  function placeOf(broker, kind, name) {
    const key = `${kind} ${name}`;
    if (!broker.places.has(key)) broker.places.set(key, { kind, name, way: { client: 0, server: 0 }, to: new Set() });
    return broker.places.get(key);
  }

  /** The colour of something with findings, as in the ladder and the list of findings. */
  const weight = (certain) => (certain ? "error" : "possible");

  function faults(one) {
    return one.found ? make("span", { class: weight(one.certain) }, ` × ${counted(one.found, "finding")}`) : "";
  }

  function lineItem(line, broker) {
    const place = placeOf(broker, line.kind, line.place);
    place.way[line.sender] += line.messages;
    const arrow = line.sender === "client" ? "→" : "←";
    const item = make("li", { class: `line ${line.sender}` },
      make("button", { type: "button", class: "go", on: { click: () => tools.goTo(line.packet) } }, line.title),
      ` ${arrow} ${line.place || "no address"}: ${went(line)}`, faults(line),
      line.error ? make("span", { class: "error" }, ` ended: ${line.error}`) : "");
    wires.push([item, place, line.found ? weight(line.certain) : line.sender, line.messages, line.sender]);
    return item;
  }

  function unitItem(unit, broker) {
    return make("li", { class: "unit" },
      make("button", { type: "button", class: "go", on: { click: () => tools.goTo(unit.packet) } }, unit.title),
      faults(unit), unit.error ? make("span", { class: "error" }, ` ended: ${unit.error}`) : "",
      make("ul", {}, ...unit.lines.map((line) => lineItem(line, broker))));
  }

  function connectionItem(one, number) {
    const [client, broker] = [clientOf(one), brokerOf(one)];
    const here = one.rows.flatMap((row) => row.found || []);
    const whole = { found: tools.findings(one), certain: here.some((each) => each.certain) };
    const troubles = one.diagnoses.filter((each) => each.trouble).length;
    const units = one.map.units || [];
    const item = make("li", { class: `card ${number === chosen ? "chosen" : ""}` },
      make("button", { type: "button", class: "go", on: { click: () => tools.open(number) } }, one.heading),
      faults(whole), troubles ? make("span", { class: "possible" }, ` ! ${counted(troubles, "diagnosis", "diagnoses")}`) : "",
      make("div", { class: "dim" }, one.ended),
      make("ul", {}, ...units.map((unit) => unitItem(unit, broker))),
      one.map.more ? make("p", { class: "dim" }, "Further links and consumers are left out.") : "");
    for (const [exchange, kind, name] of one.map.bindings || []) {
      placeOf(broker, "exchange", exchange).to.add(placeOf(broker, kind, name));
    }
    const kind = whole.found ? weight(whole.certain) : troubles ? "possible" : "quiet";
    wires.push([client, item, kind, 0, ""]);
    if (!units.some((unit) => unit.lines.length)) wires.push([item, broker, "quiet", 0, ""]);
    return item;
  }

  function placeItem(place) {
    const to = [...place.to].map((other) => `to ${other.kind} ${other.name}`);
    const parts = [place.way.client ? `${place.way.client} in` : "", place.way.server ? `${place.way.server} out` : "",
      ...to].filter(Boolean).join(", ");
    const name = place.name ? `${place.kind} ` : "no address";
    place.element = make("li", { class: "place" }, name, make("b", {}, place.name), parts ? `: ${parts}` : "");
    return place.element;
  }

  function column(title, items) {
    return make("section", { class: "column" }, make("h2", {}, title), make("ul", {}, ...items));
  }

  const cards = connections.map(connectionItem);
  const left = [...clients.values()].map((client) => {
    client.element = make("li", { class: "card" }, make("b", { class: "client" }, client.name),
      make("div", { class: "dim" }, `${[...client.addresses].join(", ")}: ${counted(client.connections, "connection")}`));
    return client.element;
  });
  const right = [...brokers.values()].map((broker) => {
    broker.element = make("li", { class: "card" }, make("b", { class: "server" }, broker.title),
      make("div", { class: "dim" }, broker.dim), make("ul", {}, ...[...broker.places.values()].map(placeItem)));
    for (const place of broker.places.values()) {
      for (const other of place.to) wires.push([place, other, "bound", 0, "client"]);
    }
    return broker.element;
  });
  const map = make("div", { class: "map" }, column("Clients", left), column("Connections", cards), column("Servers", right));

  /** A curve between two elements: to the right, or, of a binding, around the right side of both. */
  function wire(drawing, [from, to, kind, messages, sender], origin) {
    const [a, b] = [from, to].map((one) => (one.element || one).getBoundingClientRect());
    const [v, w] = [a, b].map((box) => box.top + Math.min(box.height / 2, 14) - origin.top);
    const x = a.right - origin.left;
    const y = (kind === "bound" ? b.right : b.left) - origin.left;
    const bend = kind === "bound" ? 26 : (y - x) / 2;
    const way = kind === "bound" ? 1 : -1;
    const path = svg("path", { class: kind, d: `M${x} ${v}C${x + bend} ${v} ${y + way * bend} ${w} ${y} ${w}` });
    path.style.strokeWidth = `${1 + Math.min(Math.log10(messages + 1), 4)}px`;
    drawing.append(path);
    if (!sender) return;
    const [end, height] = sender === "client" ? [y, w] : [x, v];
    const back = sender === "client" && kind !== "bound" ? -9 : 9;
    drawing.append(svg("path", { class: `head ${kind}`, d: `M${end} ${height}l${back} -4l0 8z` }));
  }

  function connect() {
    const old = map.querySelector(".wires");
    if (old) old.remove();
    const drawing = svg("svg", { class: "wires", "aria-hidden": "true" });
    const origin = map.getBoundingClientRect();
    for (const one of wires) wire(drawing, one, origin);
    map.append(drawing);
  }

  const key = make("p", { class: "dim" }, "Arrows: the way of the messages. Thick: many messages. ",
    make("span", { class: "error" }, "Red: a certain finding. "),
    make("span", { class: "possible" }, "Amber: only a possible finding or a diagnosis. "),
    "Rates are messages a second from the first message to the last one.");
  return [[key, map], connect];
}
