export const $ = (id) => document.getElementById(id)

/** An element with properties and children; text is always text, never markup. */
export function element(name, properties = {}, ...children) {
  const { dataset, ...rest } = properties
  const made = Object.assign(document.createElement(name), rest)
  Object.assign(made.dataset, dataset)
  made.append(...children.filter((child) => child !== undefined))
  return made
}

/** Puts something new before a reader's ears without moving anything. */
export function announce(text) {
  $('announcer').textContent = text
}

export function showProblem(error) {
  const text = error instanceof TypeError ? 'The gateway cannot be reached.' : error.message
  $('banner').textContent = text
  $('banner').hidden = false
}

export function clearProblem() {
  $('banner').hidden = true
}

/** Fills a list anew; whoever has the keyboard on one of its buttons (`data-key`) keeps it there. */
export function refill(parent, ...children) {
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined
  parent.replaceChildren(...children)
  if (key !== undefined) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus()
}
