import { api } from './api.js'
import { $, announce, clearProblem, element, refill, showProblem } from './dom.js'
import { closeDrawers, setUpDrawers } from './drawers.js'
import { refreshFacts, showMemoryState } from './memory-panel.js'
import { followMemory, followRun } from './streams.js'
import { LiveAnswer, renderTranscript, userItem } from './transcript.js'

const SUGGESTIONS = [
  'I live in Lisbon and my dog is called Rex.',
  'What is 17 * 23?',
  'Tell me a story slowly.',
  'What do you know about me?',
]

/** The chat on the screen; without an id it does not exist yet. */
let chat = emptyChat()
let run

function emptyChat() {
  return { id: undefined, title: '', messages: [], toolCalls: [], activeRunId: null, pendingUserMessage: null }
}

// ---- showing

async function showChats() {
  const chats = await api.chats()
  refill(
    $('chats'),
    ...chats.map(({ id, title, updatedAt }) => {
      const button = element(
        'button',
        { type: 'button', dataset: { key: id }, onclick: () => openChat(id).catch(showProblem) },
        element('span', { className: 'name', textContent: title || 'New chat' }),
        element('span', { className: 'when', textContent: whenOf(updatedAt) }),
      )
      if (id === chat.id) button.setAttribute('aria-current', 'true')
      return element('li', {}, button)
    }),
  )
}

function showChat({ keepPlace = false } = {}) {
  const isEmpty = chat.messages.length === 0 && chat.pendingUserMessage === null
  $('title').textContent = chat.title || 'New chat'
  $('welcome').hidden = !isEmpty
  renderTranscript(chat, { onUndo: () => undo().catch(showProblem), onRetry: () => retry().catch(showProblem) })
  showMemoryState(chat.memory)
  if (!keepPlace) scrollToEnd(true)
}

function showRunning(isRunning) {
  $('send').hidden = isRunning
  $('cancel').hidden = !isRunning
}

function scrollToEnd(always = false) {
  const { scrollHeight, scrollTop, clientHeight } = $('scroller')
  if (always || scrollHeight - scrollTop - clientHeight < 120) $('scroller').scrollTop = scrollHeight
}

function whenOf(time) {
  const date = new Date(time)
  const isToday = date.toDateString() === new Date().toDateString()
  return isToday
    ? date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString([], { day: 'numeric', month: 'short' })
}

// ---- doing

async function openChat(id) {
  clearProblem()
  leaveRun()
  closeDrawers()
  chat = await api.chat(id)
  history.replaceState(null, '', `#${id}`)
  showChat()
  await showChats()
  if (chat.activeRunId !== null) follow(chat.id, chat.activeRunId)
}

/** The screen changes at once; the gateway learns of the boundary and nobody waits for memory. */
async function newChat() {
  clearProblem()
  closeDrawers()
  const previous = chat
  if (previous.id !== undefined && previous.messages.length === 0 && previous.activeRunId === null) {
    $('question').focus()
    return
  }
  leaveRun()
  chat = emptyChat()
  showChat()
  $('question').focus()
  await createChat(previous.id)
  await showChats()
}

/** Once for each chat, also when somebody sends before the answer to "New chat" is here. */
function createChat(previousId) {
  const created = chat
  created.creating ??= api.newChat(previousId).then(({ id }) => {
    created.id = id
    if (chat === created) history.replaceState(null, '', `#${id}`)
  })
  return created.creating
}

async function ask(text) {
  clearProblem()
  if (chat.id === undefined) await createChat()
  const { id } = chat
  const { runId } = await api.ask(id, text)
  $('welcome').hidden = true
  $('transcript').querySelector('.actions')?.remove()
  $('transcript').append(userItem(text))
  chat.activeRunId = runId
  follow(id, runId)
  await showChats()
  if (chat.id === id && chat.title === '') {
    chat.title = text
    $('title').textContent = text
  }
}

async function undo() {
  clearProblem()
  const { text, offered } = await api.undo(chat.id)
  await refreshChat()
  $('question').value = text
  fitQuestion()
  $('question').focus()
  announce(offered > 0 ? 'Undone here. Memory had already learned from it.' : 'Undone, also in memory.')
}

async function retry() {
  clearProblem()
  const { runId } = await api.retry(chat.id)
  await refreshChat()
  follow(chat.id, runId)
  $('question').focus()
}

async function refreshChat() {
  const { id } = chat
  if (id === undefined) return
  const fresh = await api.chat(id)
  // Somebody may have gone to another chat meanwhile.
  if (chat.id !== id) return
  const isSame = JSON.stringify({ ...fresh, memory: 0 }) === JSON.stringify({ ...chat, memory: 0 })
  chat = fresh
  // Cards that were opened stay open, and a reader is not disturbed.
  if (isSame) showMemoryState(chat.memory)
  else showChat({ keepPlace: true })
}

function follow(chatId, runId) {
  leaveRun()
  const answer = new LiveAnswer()
  showRunning(true)
  scrollToEnd(true)
  const stop = followRun(chatId, runId, {
    onEvent(name, payload) {
      if (name === 'token') answer.addText(payload.text)
      else if (name === 'tool') answer.addTool(payload)
      else if (name === 'tool_complete') answer.completeTool(payload)
      scrollToEnd()
    },
    onBreak(isBroken) {
      if (isBroken) showProblem(new Error('The connection to the gateway is lost. Trying again…'))
      else clearProblem()
    },
    onEnd() {
      if (run?.runId !== runId) return
      leaveRun()
      refreshChat().then(scrollToEnd).then(showChats).catch(showProblem)
      announce(answer.text)
    },
  })
  run = { chatId, runId, stop }
}

function leaveRun() {
  run?.stop()
  run = undefined
  showRunning(false)
}

function cancelRun() {
  if (run !== undefined) api.cancel(run.chatId, run.runId).catch(showProblem)
}

function fitQuestion() {
  const question = $('question')
  question.style.height = 'auto'
  question.style.height = `${question.scrollHeight}px`
}

// ---- wiring

$('composer').addEventListener('submit', (event) => {
  event.preventDefault()
  const text = $('question').value.trim()
  if (text === '' || run !== undefined) return
  $('question').value = ''
  fitQuestion()
  ask(text).catch((error) => {
    // Nothing that was typed is lost.
    $('question').value ||= text
    fitQuestion()
    showProblem(error)
  })
})
$('question').addEventListener('input', fitQuestion)
$('question').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  $('composer').requestSubmit()
})
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !closeDrawers()) cancelRun()
})
$('cancel').addEventListener('click', () => {
  cancelRun()
  $('question').focus()
})
$('new-chat').addEventListener('click', () => newChat().catch(showProblem))
$('suggestions').append(
  ...SUGGESTIONS.map((text) =>
    element(
      'li',
      {},
      element('button', { type: 'button', textContent: text, onclick: () => ask(text).catch(showProblem) }),
    ),
  ),
)
setUpDrawers()

async function onMemoryChange({ name, sessionId }) {
  // `connected` and `missed`: anything may have happened.
  const isAnything = sessionId === undefined
  if (name === 'commit:succeeded' || name === 'receipt:settled' || isAnything) await refreshFacts()
  if (run === undefined && (sessionId === chat.id || isAnything)) await refreshChat()
}

async function begin() {
  const { model, memory } = await api.health()
  $('about').replaceChildren(`Model: ${model}`, element('br'), `Memory: ${memory}`)
  const wanted = location.hash.slice(1)
  const chats = await api.chats()
  const first = chats.find(({ id }) => id === wanted) ?? chats[0]
  if (first === undefined) showChat()
  else await openChat(first.id)
  followMemory((event) => void onMemoryChange(event).catch(showProblem))
  $('question').focus()
}

begin().catch(showProblem)
