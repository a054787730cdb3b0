// The table of contents of a page: a link to each visible section with a heading. The link of the section on the screen is
// marked.
import { byId, createElement } from '/lib/dom.js';

let observer = null;

const nameOf = (section) => section.querySelector('h2')?.textContent ?? section.getAttribute('aria-label');

/** Marks the link of the topmost visible section. */
function markCurrent(sections) {
  const current = sections.find((section) => section.getBoundingClientRect().bottom > 120) ?? sections.at(-1);
  for (const link of byId('contents-list').querySelectorAll('a')) {
    if (link.hash === `#${current?.id}`) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
}

/** Lists the visible sections of a holder. */
export function drawContents(holder) {
  const sections = [...holder.querySelectorAll(':scope > section')].filter((section) => !section.hidden);
  byId('contents-list').replaceChildren(...sections.map((section) =>
    createElement('li', {}, createElement('a', { href: `#${section.id}` }, nameOf(section)))));
  observer?.disconnect();
  observer = new IntersectionObserver(() => markCurrent(sections),
    { threshold: [0, 0.1, 0.5, 1], rootMargin: '-100px 0px 0px 0px' });
  for (const section of sections) observer.observe(section);
  markCurrent(sections);
}
