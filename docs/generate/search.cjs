// Ask the built site's own search ten and more questions, and hold its first answer to the page that a reader wants.
//
//     node docs/generate/search.cjs site
//
// The site's search worker runs here as it runs in a browser. The exit status is 1 if an answer is another page.
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const WANTED = [
  ["consumer stopped", "guides/consumer-stopped.html"],
  ["window-violation", "rules/subjects/window/index.html"],
  ["session closed", "guides/session-closed.html"],
  ["who closed", "guides/session-closed.html"],
  ["exit code", "reference/exit-status.html"],
  ["ignore a rule", "guides/ignore-a-rule.html"],
  ["TLS", "guides/"],
  ["pytest", "guides/pytest.html"],
  ["github", "guides/github.html"],
  ["spark", "guides/spark.html"],
  ["delivery-count", "rules/"],
  ["L-CREDIT-INIT", "rules/amqp10/L-CREDIT-INIT/index.html"],
  ["proxy", "guides/proxy.html"],
  ["baseline", "guides/configuration.html"],
];
const SETUP = 0, QUERY = 2; // the worker's kinds of messages

async function main(site) {
  const folder = path.join(site, "assets/javascripts/workers");
  const script = fs.readdirSync(folder).find(name => /^search\..*\.js$/.test(name));
  let answered;
  const worker = {
    addEventListener: (_, listener) => { worker.listener = listener; },
    postMessage: message => answered(message),
    location: { href: "file:///" },
  };
  worker.self = worker;
  vm.createContext(worker);
  vm.runInContext(fs.readFileSync(path.join(folder, script), "utf8"), worker);
  const ask = (type, data) => new Promise(resolve => { answered = resolve; worker.listener({ data: { type, data } }); });

  const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
  await ask(SETUP, { ...index, options: { suggest: false } });
  let wrong = 0;
  for (const [question, page] of WANTED) {
    const { data } = await ask(QUERY, question);
    const first = data.items.length ? data.items[0][0].location : "no page";
    if (first.startsWith(page)) continue;
    wrong += 1;
    console.error(`search for "${question}": the first page is ${first}, and not ${page}`);
  }
  console.log(`${WANTED.length} questions to the search of ${site}, ${wrong} with a wrong first page`);
  return wrong ? 1 : 0;
}

main(process.argv[2]).then(status => { process.exitCode = status; });
