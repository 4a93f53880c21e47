import { api } from './api.js'
import { $, element, refill, showProblem } from './dom.js'

let known = new Set()

export async function refreshFacts() {
  const { facts } = await api.facts()
  if (facts === null) {
    $('memory-note').textContent = 'This memory keeps its facts on its own server.'
    return
  }
  $('memory-note').textContent =
    facts.length === 0
      ? 'Nothing yet. Facts come here when a chat is left or has been quiet for a while.'
      : 'What was learned from your chats. Forgotten facts are not learned again.'
  refill($('facts'), ...facts.map(factItem))
  known = new Set(facts.map(({ id }) => id))
}

function factItem({ id, content }) {
  const forget = element('button', { type: 'button', title: 'Forget', textContent: '✕', dataset: { key: id } })
  forget.setAttribute('aria-label', `Forget: ${content}`)
  forget.addEventListener('click', () => {
    api
      .forget(id)
      .then(refreshFacts)
      .then(() => $('memory').querySelector('button')?.focus(), showProblem)
  })
  const className = known.size > 0 && !known.has(id) ? 'fresh' : ''
  return element('li', { className }, element('p', { textContent: content }), forget)
}

/** How far memory is behind this chat. */
export function showMemoryState({ generation = 0, waiting = 0, accepted = 0, parked = 0 } = {}) {
  const pill = $('memory-state')
  const turns = (count) => (count === 1 ? '1 turn' : `${count} turns`)
  const [className, text] =
    parked > 0
      ? ['parked', `${turns(parked)} could not be learned`]
      : waiting > 0
        ? ['waiting', `${turns(waiting)} to learn`]
        : accepted > 0
          ? ['waiting', `${turns(accepted)} being learned`]
          : generation > 0
            ? ['learned', 'learned']
            : ['', '']
  pill.className = `pill ${className}`
  pill.textContent = text
}
