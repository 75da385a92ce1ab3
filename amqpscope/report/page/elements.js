// What the scripts of all pages build their documents with. Texts become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, and with children that are nodes or texts. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [type, run] of Object.entries(value)) element.addEventListener(type, run);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

/** An element of SVG. */
function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const counted = (number, noun, plural) => `${number} ${number === 1 ? noun : plural || `${noun}s`}`;
