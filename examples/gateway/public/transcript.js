import { toolCard } from './cards.js'
import { $, element, refill } from './dom.js'

/** Builds the conversation from what the gateway keeps. */
export function renderTranscript(chat, { onUndo, onRetry }) {
  const items = chat.messages.map((message, at) => messageItem(chat, message, at))
  if (chat.pendingUserMessage !== null) items.push(userItem(chat.pendingUserMessage))
  if (chat.activeRunId === null && chat.messages.some(({ role }) => role === 'user')) {
    items.push(
      element(
        'li',
        { className: 'actions' },
        element('button', { type: 'button', dataset: { key: 'undo' }, textContent: 'Undo', onclick: onUndo }),
        element('button', { type: 'button', dataset: { key: 'retry' }, textContent: 'Retry', onclick: onRetry }),
      ),
    )
  }
  refill($('transcript'), ...items)
}

export function userItem(text) {
  return element(
    'li',
    { className: 'message user' },
    element('span', { className: 'hidden', textContent: 'You said: ' }),
    element('div', { className: 'said', textContent: text }),
  )
}

function messageItem(chat, message, at) {
  if (message.role === 'user') return userItem(message.content)
  if (message.interruption !== undefined) {
    return element(
      'li',
      { className: 'message' },
      element('p', { className: 'note interruption', textContent: message.content }),
    )
  }
  const item = assistantItem()
  const calls = chat.toolCalls.filter(({ messageIndex }) => messageIndex === at)
  if (message.content !== '') item.append(element('div', { className: 'said', textContent: message.content }))
  item.append(...calls.map((call) => toolCard(call, { stopped: message.partial === true })))
  // Said once, below the last piece of a partial answer.
  const next = chat.messages[at + 1]
  if (message.partial === true && next?.partial !== true) {
    const words =
      next?.interruption === undefined ? 'Cancelled: this answer is partial' : 'Interrupted: this answer is partial'
    item.append(element('span', { className: 'badge partial', textContent: words }))
  }
  return item
}

function assistantItem() {
  return element(
    'li',
    { className: 'message assistant' },
    element('span', { className: 'hidden', textContent: 'The assistant said: ' }),
  )
}

/** An answer that is being written. */
export class LiveAnswer {
  #item = assistantItem()
  #said
  #cards = []
  text = ''

  constructor() {
    this.#item.classList.add('streaming')
    this.#item.setAttribute('aria-busy', 'true')
    this.#item.append(element('div', { className: 'said' }))
    $('transcript').append(this.#item)
  }

  addText(text) {
    if (this.#said === undefined) {
      this.#dropPlaceholder()
      this.#said = element('div', { className: 'said' })
      this.#item.append(this.#said)
    }
    this.text += text
    this.#said.append(text)
  }

  addTool(call) {
    this.#dropPlaceholder()
    const card = toolCard({ ...call, done: false })
    this.#cards.push({ call, card, done: false })
    this.#item.append(card)
    this.#said = undefined
  }

  completeTool(result) {
    const open = this.#cards.find(({ call, done }) => !done && call.name === result.name)
    if (open === undefined) return
    open.done = true
    const card = toolCard({ ...open.call, ...result, done: true })
    open.card.replaceWith(card)
  }

  #dropPlaceholder() {
    const first = this.#item.querySelector('.said')
    if (first?.textContent === '') first.remove()
  }
}
