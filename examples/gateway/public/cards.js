import { element } from './dom.js'

/** One tool call, or what memory recalled, as a card that opens. */
export function toolCard({ name, args, done, isError, durationMs, preview }, { stopped = false } = {}) {
  const card = element('details', { className: 'card' })
  const state = isError ? 'failed' : done ? 'done' : stopped ? 'stopped' : 'running'
  card.classList.add(state)
  card.dataset.tool = name
  const isRecall = name === 'recall'
  const facts = isRecall ? (args?.facts ?? []) : []
  const what = isRecall ? 'Recalled from memory' : name
  card.append(
    element(
      'summary',
      {},
      element('span', { className: 'dot' }),
      element('span', { className: 'what', textContent: what }),
      element('span', {
        className: 'detail',
        textContent: detailOf({ isRecall, facts, args, preview, state, durationMs }),
      }),
    ),
    isRecall
      ? element('ul', { className: 'inside' }, ...facts.map((fact) => element('li', { textContent: fact })))
      : element('div', { className: 'inside' }, element('code', { textContent: inside(args, preview) })),
  )
  return card
}

const STATE_WORDS = { running: 'running…', stopped: 'was interrupted', failed: 'failed', done: '' }

function detailOf({ isRecall, facts, args, preview, state, durationMs }) {
  if (isRecall) {
    if (state === 'failed') return 'memory could not be reached'
    return facts.length === 1 ? facts[0] : `${facts.length} facts`
  }
  const given = typeof args === 'object' && args !== null ? Object.values(args).map(String).join(', ') : ''
  const result = preview === undefined ? '' : ` → ${preview}`
  const time = durationMs >= 100 ? `${(durationMs / 1000).toFixed(1)} s` : ''
  return [`${given}${result}`.trim(), STATE_WORDS[state], time].filter((part) => part !== '').join(' · ')
}

function inside(args, preview) {
  const given = JSON.stringify(args ?? {}, undefined, 2)
  return preview === undefined ? given : `${given}\n\n→ ${preview}`
}
